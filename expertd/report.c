/* Messages are put together on the stack: their sizes are known. */
#include "expertd/report.h"
#include "proto/areas.h"

#include <stdio.h>

void report_hello(const struct dispatch *d, struct link_request *r)
{
    Kapok__TileBox box[TILE_BOXES], *boxes[TILE_BOXES];
    Kapok__HelloReply hello = KAPOK__HELLO_REPLY__INIT;
    Kapok__Reply reply = KAPOK__REPLY__INIT;

    for (size_t i = 0; i < d->tiles->boxes; i++) {
        const struct tile_box *b = &d->tiles->box[i];
        kapok__tile_box__init(&box[i]);
        box[i].layer_first = b->layer_first;
        box[i].layer_end = b->layer_end;
        box[i].expert_first = b->expert_first;
        box[i].expert_end = b->expert_end;
        box[i].bands = b->bands;
        boxes[i] = &box[i];
    }
    hello.role = (char *)"expertd";
    hello.version = (char *)KAPOK_VERSION;
    hello.instance = d->instance;
    hello.payload_most = d->payload_most;
    hello.n_tiles = d->tiles->boxes;
    hello.tiles = boxes;
    reply.body_case = KAPOK__REPLY__BODY_HELLO;
    reply.hello = &hello;
    link_server_reply(r, &reply, NULL, 0);
}

struct stats { /* a StatsReply and everything it points to */
    Kapok__StatsReply reply;
    Kapok__Counter counter[TALLY_COUNTS], *counters[TALLY_COUNTS];
    struct areas areas;
    Kapok__Percentiles latency[TALLY_LATENCIES], *latencies[TALLY_LATENCIES];
    char now[64];
};

static void fill_counters(struct stats *s, const struct tally *t)
{
    for (int i = 0; i < TALLY_COUNTS; i++) {
        kapok__counter__init(&s->counter[i]);
        s->counter[i].name = (char *)tally_count_name(i);
        s->counter[i].value = (double)tally_get(t, i);
        s->counters[i] = &s->counter[i];
    }
    s->reply.n_counters = TALLY_COUNTS;
    s->reply.counters = s->counters;
}

static void fill_latencies(struct stats *s, const struct tally *t)
{
    for (int i = 0; i < TALLY_LATENCIES; i++) {
        Kapok__Percentiles *p = &s->latency[i];
        kapok__percentiles__init(p);
        p->name = (char *)tally_latency_name(i);
        p->p50 = tally_percentile(t, i, 0.50);
        p->p90 = tally_percentile(t, i, 0.90);
        p->p99 = tally_percentile(t, i, 0.99);
        p->most = 1e-3 * (double)t->times[i].most;
        p->count = t->times[i].number;
        s->latencies[i] = p;
    }
    s->reply.n_latencies = TALLY_LATENCIES;
    s->reply.latencies = s->latencies;
}

void report_stats(const struct dispatch *d, struct link_request *r)
{
    struct stats s;
    Kapok__Reply reply = KAPOK__REPLY__INIT;
    size_t busy = d->pool->jobs - queue_count(&d->pool->idle);

    kapok__stats_reply__init(&s.reply);
    fill_counters(&s, d->tally);
    areas_write(&s.areas, d->memory, &s.reply);
    fill_latencies(&s, d->tally);
    if (busy)
        snprintf(s.now, sizeof s.now, "%zu requests", busy);
    else
        snprintf(s.now, sizeof s.now, "idle");
    s.reply.now = s.now;
    reply.body_case = KAPOK__REPLY__BODY_STATS;
    reply.stats = &s.reply;
    link_server_reply(r, &reply, NULL, 0);
}
