/*
 * See the header. The last StatsReply of each stage is kept as JSON; the link's own figures are
 * looked up when asked.
 */
#include "coordinator/monitor.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/thread.h"

#define MONITOR_WAKE 0.1 /* seconds after which a stop is noticed at the latest */

struct monitor {
    struct links *links;
    struct hub *hub;
    size_t stages;
    struct thread thread;
    struct queue done;
    struct link_call call[HUB_STAGES];
    bool asking[HUB_STAGES];
    Kapok__Request request;
    Kapok__Stats body;

    pthread_mutex_t lock;      /* of `stats`, `stopping` */
    json_t *stats[HUB_STAGES]; /* NULL: never answered */
    bool stopping;
};

static json_t *counters_json(const Kapok__StatsReply *r)
{
    json_t *j = json_object();

    for (size_t i = 0; i < r->n_counters; i++)
        json_object_set_new(j, r->counters[i]->name, json_real(r->counters[i]->value));
    return j;
}

static json_t *peers_json(const Kapok__StatsReply *r)
{
    json_t *j = json_array();

    for (size_t i = 0; i < r->n_peers; i++) {
        const Kapok__PeerStats *p = r->peers[i];

        json_array_append_new(
            j, json_pack("{s:s,s:s,s:s,s:o,s:I,s:I,s:I,s:f,s:I}", "address", p->address,
                         "state", p->state, "reason", p->reason, "age",
                         isfinite(p->age) ? json_real(p->age) : json_null(), "bytes_sent",
                         (json_int_t)p->bytes_sent, "bytes_received",
                         (json_int_t)p->bytes_received, "requests", (json_int_t)p->requests,
                         "straggler_seconds", isfinite(p->straggler) ? p->straggler : 0,
                         "tiles", (json_int_t)p->tiles));
    }
    return j;
}

static json_t *areas_json(const Kapok__StatsReply *r)
{
    json_t *j = json_array();

    for (size_t i = 0; i < r->n_areas; i++)
        json_array_append_new(j, json_pack("{s:s,s:I}", "name", r->areas[i]->name, "bytes",
                                           (json_int_t)r->areas[i]->bytes));
    return j;
}

static json_t *latencies_json(const Kapok__StatsReply *r)
{
    json_t *j = json_array();

    for (size_t i = 0; i < r->n_latencies; i++) {
        const Kapok__Percentiles *p = r->latencies[i];

        json_array_append_new(j, json_pack("{s:s,s:f,s:f,s:f,s:f,s:I}", "name", p->name,
                                           "p50_ms", p->p50, "p90_ms", p->p90, "p99_ms", p->p99,
                                           "most_ms", p->most, "count", (json_int_t)p->count));
    }
    return j;
}

static void keep(struct monitor *m, size_t stage, const Kapok__StatsReply *r)
{
    json_t *j =
        json_pack("{s:s,s:o,s:o,s:o,s:o}", "now", r->now, "counters", counters_json(r), "peers",
                  peers_json(r), "areas", areas_json(r), "latencies", latencies_json(r));

    pthread_mutex_lock(&m->lock);
    json_decref(m->stats[stage]);
    m->stats[stage] = j;
    pthread_mutex_unlock(&m->lock);
}

static void ask(struct monitor *m, size_t stage)
{
    struct link_call *c = &m->call[stage];

    if (m->asking[stage])
        return;
    c->request = &m->request;
    c->payload = NULL;
    c->payload_parts = 0;
    c->seconds = 30;
    c->done = &m->done;
    c->owner = NULL;
    m->asking[stage] = true;
    link_call_start(c);
}

static bool is_stopping(struct monitor *m)
{
    bool stopping;

    pthread_mutex_lock(&m->lock);
    stopping = m->stopping;
    pthread_mutex_unlock(&m->lock);
    return stopping;
}

static void collect_one(struct monitor *m, struct link_call *c)
{
    size_t stage = (size_t)(c - m->call);

    if (c->error == 0 && c->reply.reply->body_case == KAPOK__REPLY__BODY_STATS)
        keep(m, stage, c->reply.reply->stats);
    link_call_release(c);
    m->asking[stage] = false;
}

/* Takes what was answered until the next round is due. */
static void collect(struct monitor *m, double until)
{
    while (thread_now() < until && !is_stopping(m)) {
        void *item;

        if (queue_take(&m->done, MONITOR_WAKE, &item) == 0)
            collect_one(m, item);
    }
}

static void monitor_run(void *context)
{
    struct monitor *m = context;

    while (!is_stopping(m)) {
        for (size_t i = 0; i < m->stages; i++)
            ask(m, i);
        collect(m, thread_now() + MONITOR_SECONDS);
    }
}

int monitor_open(struct monitor **ret_monitor, struct links *links, struct hub *hub)
{
    struct monitor *m = calloc(1, sizeof *m);
    int error;

    if (m == NULL)
        return -ENOMEM;
    m->links = links;
    m->hub = hub;
    pthread_mutex_init(&m->lock, NULL);
    kapok__request__init(&m->request);
    kapok__stats__init(&m->body);
    m->request.body_case = KAPOK__REQUEST__BODY_STATS;
    m->request.stats = &m->body;
    error = queue_open(&m->done, hub_stages(hub));
    for (size_t i = 0; i < hub_stages(hub) && error == 0; i++) {
        error = link_call_open(&m->call[i], hub_stage(hub, i));
        if (error == 0)
            m->stages = i + 1;
    }
    if (error != 0) {
        monitor_close(m);
        return error;
    }
    *ret_monitor = m;
    return 0;
}

int monitor_start(struct monitor *m)
{
    return thread_start(&m->thread, "monitor", monitor_run, m);
}

void monitor_stop(struct monitor *m)
{
    pthread_mutex_lock(&m->lock);
    m->stopping = true;
    pthread_mutex_unlock(&m->lock);
    thread_join(&m->thread);
}

void monitor_close(struct monitor *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->stages; i++) {
        link_call_close(&m->call[i]);
        json_decref(m->stats[i]);
    }
    if (m->done.item != NULL)
        queue_free(&m->done);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static json_t *link_json(struct link *link)
{
    struct link_status s;

    link_status(link, &s);
    return json_pack("{s:s,s:s,s:o,s:I,s:I,s:I}", "state", link_state_name(s.state), "reason",
                     s.reason, "age", isfinite(s.age) ? json_real(s.age) : json_null(),
                     "bytes_sent", (json_int_t)s.bytes_sent, "bytes_received",
                     (json_int_t)s.bytes_received, "requests", (json_int_t)s.requests);
}

static json_t *hello_json(struct link *link)
{
    const Kapok__HelloReply *hello = link_hello_get(link);
    const Kapok__TrunkServes *t = hello != NULL ? hello->trunk : NULL;
    json_t *j = json_null();

    if (t != NULL)
        j = json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:b,s:I,s:I,s:s}", "version", hello->version,
                      "layer_first", (json_int_t)t->layer_first, "layer_end",
                      (json_int_t)t->layer_end, "rows_most", (json_int_t)t->rows_most,
                      "sequences_most", (json_int_t)t->sequences_most, "positions_most",
                      (json_int_t)t->positions_most, "ready", (int)t->ready, "tiles_needed",
                      (json_int_t)t->tiles_needed, "tiles_covered",
                      (json_int_t)t->tiles_covered, "missing", t->missing);
    link_hello_put(link);
    return j;
}

json_t *monitor_stage(struct monitor *m, size_t stage)
{
    struct link *link = hub_stage(m->hub, stage);
    json_t *stats;

    pthread_mutex_lock(&m->lock);
    stats = m->stats[stage] != NULL ? json_incref(m->stats[stage]) : json_null();
    pthread_mutex_unlock(&m->lock);
    return json_pack("{s:s,s:o,s:o,s:o}", "address", link_address(link), "link",
                     link_json(link), "serves", hello_json(link), "stats", stats);
}
