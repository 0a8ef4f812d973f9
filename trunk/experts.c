/* The layer's conversation with the expertds: begin, finish, and giving up. */
#include "trunk/experts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/thread.h"
#include "proto/compute.h"
#include "trunk/experts_private.h"

#define LOG_FIRST 1.0  /* seconds without progress until it is logged */
#define LOG_AGAIN 60.0 /* and then from line to line */

/* ---- opening ----------------------------------------------------------------------------- */

/* Where everything lies in one area; `at` moves on. */
static void *lay(uintptr_t *at, size_t bytes)
{
    void *here = (void *)*at;
    *at += (bytes + 63) / 64 * 64;
    return here;
}

static void lay_ask(struct experts *x, struct experts_peer *p, size_t i, uintptr_t *at)
{
    struct experts_ask *a = &p->ask[i];
    a->peer = p;
    a->expert = lay(at, x->shape->experts * sizeof *a->expert);
    a->row = lay(at, x->options.rows_most * sizeof *a->row);
    a->counts = lay(at, x->options.rows_most * sizeof *a->counts);
}

/* Lays everything out from `start`; gives the end. Without peers of its own it only measures,
 * for so many. */
static uintptr_t lay_all(struct experts *x, size_t peers, uintptr_t start)
{
    uintptr_t at = start;
    const struct shape *s = x->shape;
    size_t rows = x->options.rows_most, table = EXPERTS_CHUNKS * s->experts * sizeof(uint64_t);
    x->orphan = lay(&at, table);
    x->chosen = lay(&at, s->experts * sizeof *x->chosen);
    x->z_room = lay(&at, rows * s->latent * sizeof *x->z_room);
    x->weight_room = lay(&at, rows * s->chosen * sizeof *x->weight_room);
    x->expert_room = lay(&at, rows * s->chosen * sizeof *x->expert_room);
    x->payload_room = lay(&at, compute_bytes(s, (uint32_t)rows, rows * s->chosen));
    for (size_t i = 0; i < peers; i++) {
        struct experts_peer *p = &x->peer[x->peers ? i : 0];
        p->todo = lay(&at, table);
        p->hinted = lay(&at, s->experts * sizeof *p->hinted);
        for (size_t j = 0; j < EXPERTS_ASKS; j++)
            lay_ask(x, p, j, &at);
    }
    return at;
}

uint64_t experts_bytes(const struct shape *s, size_t peers, uint32_t rows_most)
{
    struct experts_peer one;
    struct experts x = {.shape = s, .peer = &one};
    x.options.rows_most = rows_most;
    return lay_all(&x, peers, 0);
}

static int open_calls(struct experts *x)
{
    int r = queue_open(&x->done, x->peers * (EXPERTS_ASKS + 1) + 1);
    for (size_t i = 0; !r && i < x->peers; i++) {
        struct experts_peer *p = &x->peer[i];
        coverage_peer(x->options.coverage, i, &p->known);
        r = link_call_open(&p->hint, p->known.link);
        for (size_t j = 0; !r && j < EXPERTS_ASKS; j++)
            r = link_call_open(&p->ask[j].call, p->known.link);
    }
    return r;
}

int experts_open(struct experts **ret_experts, const struct experts_options *o,
                 struct memory *m)
{
    void *area;
    struct experts *x = calloc(1, sizeof *x);
    if (!x)
        return -ENOMEM;
    pthread_mutex_init(&x->lock, NULL);
    x->options = *o;
    x->shape = o->shape;
    x->generation = UINT64_MAX;
    size_t peers = o->coverage->peers;
    x->peer = calloc(peers ? peers : 1, sizeof *x->peer);
    int r = x->peer ? 0 : -ENOMEM;
    if (!r)
        r = memory_take(m, "requests to expertds", experts_bytes(o->shape, peers, o->rows_most),
                        &area);
    if (!r) {
        x->peers = peers;
        lay_all(x, peers, (uintptr_t)area);
        r = open_calls(x);
    }
    if (r) {
        experts_close(x);
        return r;
    }
    *ret_experts = x;
    return 0;
}

void experts_close(struct experts *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->peers; i++) {
        link_call_close(&x->peer[i].hint);
        for (size_t j = 0; j < EXPERTS_ASKS; j++)
            link_call_close(&x->peer[i].ask[j].call);
    }
    if (x->done.item)
        queue_free(&x->done);
    pthread_mutex_destroy(&x->lock);
    free(x->peer);
    free(x);
}

/* ---- waiting ----------------------------------------------------------------------------- */

struct patience {
    double since, logged; /* since the last progress; of the last line, 0: none yet */
};

static void be_patient(struct patience *p, const char *what, uint32_t layer, const char *whom)
{
    double now = thread_now();
    if (now - p->since < LOG_FIRST || (p->logged > 0 && now - p->logged < LOG_AGAIN))
        return;
    log_warn("%s layer=%u seconds=%.0f for=\"%s\"", what, layer, now - p->since, whom);
    p->logged = now;
}

int experts_await(struct experts *x)
{
    struct coverage_summary now;
    struct patience p = {thread_now(), 0};
    for (;;) {
        coverage_look(x->options.coverage, &now);
        if (now.covered == now.needed)
            return 0;
        if (!x->options.wanted(x->options.context))
            return -ECANCELED;
        be_patient(&p, "waiting for tiles", 0, now.missing);
        links_wait(x->options.coverage->links, now.generation, EXPERTS_POLL);
    }
}

/* ---- a layer ----------------------------------------------------------------------------- */

static void hint(void *context, const struct routing *r)
{
    struct experts *x = context;
    memset(x->chosen, 0, x->shape->experts * sizeof *x->chosen);
    for (size_t i = 0; i < (size_t)r->rows * r->chosen; i++)
        x->chosen[r->expert[i]] = true;
    for (size_t i = 0; i < x->peers; i++) {
        struct experts_peer *p = &x->peer[i];
        if (p->hinting || !p->known.up)
            continue;
        kapok__request__init(&p->hint_request);
        kapok__hint__init(&p->hint_body);
        p->hint_request.body_case = KAPOK__REQUEST__BODY_HINT;
        p->hint_request.hint = &p->hint_body;
        p->hint_body.layer = r->layer;
        p->hint_body.experts = p->hinted;
        for (uint32_t e = 0; e < x->shape->experts; e++)
            if (x->chosen[e] && tile_set_bands(&p->known.tiles, r->layer, e))
                p->hinted[p->hint_body.n_experts++] = e;
        if (!p->hint_body.n_experts)
            continue;
        p->hint.request = &p->hint_request;
        p->hint.seconds = x->options.deadline;
        p->hint.done = &x->done;
        p->hinting = true;
        link_call_start(&p->hint);
    }
}

static uint32_t choose_chunk(const struct experts *x)
{
    uint32_t rows = x->options.rows_most;
    for (size_t i = 0; i < x->peers; i++) {
        uint32_t takes = experts_plan_rows(x, &x->peer[i].known);
        if (takes && takes < rows)
            rows = takes;
    }
    return rows;
}

/* Asks for the rows from `first` on. */
static void begin_wave(struct experts *x, uint32_t first)
{
    uint64_t most = (uint64_t)EXPERTS_CHUNKS * x->chunk_rows;
    uint32_t rows = x->routing.rows - first;
    x->first = first;
    x->rows = rows < most ? rows : (uint32_t)most;
    experts_plan_wave(x);
    experts_plan_assign(x);
    experts_ask_send(x);
}

static void begin(void *context, const struct routing *r, const float *z)
{
    struct experts *x = context;
    x->routing = *r;
    x->z = z;
    x->error = 0;
    snprintf(x->reason, sizeof x->reason, "layer %u: nobody holds its experts", r->layer);
    for (size_t i = 0; i < x->peers; i++)
        x->peer[i].failed = false;
    x->rows = 0;
    x->chunk_rows = x->options.rows_most; /* no limit yet */
    experts_plan_assign(x);               /* takes in the peers; there are no orphans */
    x->chunk_rows = choose_chunk(x);
    begin_wave(x, 0);
}

/* Takes the next call that ended, if one does; sum NULL: what it brings is not wanted. */
static struct experts_peer *take_ended(struct experts *x, double seconds, int64_t *sum)
{
    void *item;
    if (queue_take(&x->done, seconds, &item))
        return NULL;
    struct link_call *c = item;
    for (size_t i = 0; !c->owner && i < x->peers; i++)
        if (c == &x->peer[i].hint) {
            x->peer[i].hinting = false;
            link_call_release(c);
            return NULL;
        }
    struct experts_ask *a = c->owner;
    experts_ask_end(x, a, sum);
    return a->peer;
}

static bool any_busy(const struct experts *x)
{
    for (size_t i = 0; i < x->peers; i++)
        for (size_t j = 0; j < EXPERTS_ASKS; j++)
            if (x->peer[i].ask[j].busy)
                return true;
    return false;
}

static void drop(void *context)
{
    struct experts *x = context;
    size_t table = EXPERTS_CHUNKS * x->shape->experts * sizeof(uint64_t);
    for (size_t i = 0; i < x->peers; i++)
        for (size_t j = 0; j < EXPERTS_ASKS; j++)
            if (x->peer[i].ask[j].busy)
                link_call_cancel(&x->peer[i].ask[j].call);
    while (any_busy(x))
        take_ended(x, EXPERTS_POLL, NULL);
    for (size_t i = 0; i < x->peers; i++) {
        memset(x->peer[i].todo, 0, table);
        x->peer[i].load = 0;
    }
    memset(x->orphan, 0, table);
}

/* The last answer of a wave came `seconds` after the one before. */
static void blame(struct experts *x, struct experts_peer *p, double seconds)
{
    pthread_mutex_lock(&x->lock);
    p->straggled += seconds;
    pthread_mutex_unlock(&x->lock);
}

/* Until all tiles of the wave are summed, or there is an error. */
static int finish_wave(struct experts *x, int64_t *sum)
{
    struct patience p = {thread_now(), 0};
    char whom[320];
    while (x->left && !x->error) {
        if (!x->options.wanted(x->options.context))
            return -ECANCELED;
        uint64_t before = x->left;
        struct experts_peer *from = take_ended(x, EXPERTS_POLL, sum);
        if (from && !x->left)
            blame(x, from, thread_now() - p.since);
        experts_plan_assign(x);
        experts_ask_watch(x);
        experts_ask_send(x);
        if (x->left < before) {
            p = (struct patience){thread_now(), 0};
            continue;
        }
        experts_plan_describe(x, whom, sizeof whom);
        be_patient(&p, "waiting for expertds", x->routing.layer, whom);
    }
    return x->error;
}

static int finish(void *context, int64_t *sum, char *ret_reason, size_t size)
{
    struct experts *x = context;
    double started = thread_now();
    memset(sum, 0, (size_t)x->routing.rows * x->shape->latent * sizeof *sum);
    int r = finish_wave(x, sum);
    while (!r && x->first + x->rows < x->routing.rows) {
        begin_wave(x, x->first + x->rows);
        r = finish_wave(x, sum);
    }
    if (r) {
        drop(x);
        snprintf(ret_reason, size, "%s",
                 r == -ECANCELED ? "the step was cancelled" : x->reason);
    }
    pthread_mutex_lock(&x->lock);
    x->counters.us_waited += (uint64_t)((thread_now() - started) * 1e6);
    pthread_mutex_unlock(&x->lock);
    return r;
}

struct gather experts_gather(struct experts *x)
{
    return (struct gather){x, hint, begin, finish, drop};
}

void experts_counters(struct experts *x, struct experts_counters *ret_counters)
{
    pthread_mutex_lock(&x->lock);
    *ret_counters = x->counters;
    pthread_mutex_unlock(&x->lock);
}

double experts_straggler(struct experts *x, size_t peer)
{
    pthread_mutex_lock(&x->lock);
    double seconds = x->peer[peer].straggled;
    pthread_mutex_unlock(&x->lock);
    return seconds;
}
