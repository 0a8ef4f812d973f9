/* Hello and Stats, put together on the stack: their sizes are known. */
#include "trunk/account.h"

#include <stdio.h>

#include "base/thread.h"
#include "proto/areas.h"

void account_hello(const struct account *a, struct link_request *q)
{
    Kapok__TrunkServes trunk = KAPOK__TRUNK_SERVES__INIT;
    Kapok__HelloReply hello = KAPOK__HELLO_REPLY__INIT;
    Kapok__Reply reply = KAPOK__REPLY__INIT;
    const struct sizing *z = a->runner->sizing;
    struct coverage_summary tiles;

    coverage_look(a->coverage, &tiles);
    trunk.layer_first = z->states.layer_first;
    trunk.layer_end = z->states.layer_end;
    trunk.rows_most = z->rows_most;
    trunk.logits_most = z->logits_most;
    trunk.sequences_most = z->states.sequences;
    trunk.positions_most = z->states.positions;
    trunk.ready = tiles.covered == tiles.needed;
    trunk.tiles_needed = tiles.needed;
    trunk.tiles_covered = tiles.covered;
    trunk.missing = tiles.missing;
    hello.role = (char *)"trunk";
    hello.version = (char *)KAPOK_VERSION;
    hello.instance = a->instance;
    hello.payload_most = a->payload_most;
    hello.trunk = &trunk;
    reply.body_case = KAPOK__REPLY__BODY_HELLO;
    reply.hello = &hello;
    link_server_reply(q, &reply, NULL, 0);
}

/* ---- Stats ------------------------------------------------------------------------------- */

#define COUNTERS 16

struct stats { /* a StatsReply and everything it points to */
    Kapok__StatsReply reply;
    Kapok__Counter counter[COUNTERS], *counters[COUNTERS];
    Kapok__PeerStats peer[COVERAGE_PEERS], *peers[COVERAGE_PEERS];
    struct link_status status[COVERAGE_PEERS];
    struct areas areas;
    char now[96];
};

static void add_counter(struct stats *s, const char *name, double value)
{
    Kapok__Counter *c = &s->counter[s->reply.n_counters];
    kapok__counter__init(c);
    c->name = (char *)name;
    c->value = value;
    s->counters[s->reply.n_counters++] = c;
}

static void fill_counters(struct stats *s, struct runner *r)
{
    struct weights_counters w;
    struct experts_counters x;
    weights_counters(r->pass.weights, &w);
    experts_counters(r->experts, &x);
    s->reply.counters = s->counters;
    add_counter(s, "steps", (double)atomic_load(&r->steps));
    add_counter(s, "rows", (double)atomic_load(&r->rows_done));
    add_counter(s, "steps_failed", (double)atomic_load(&r->steps_failed));
    add_counter(s, "steps_cancelled", (double)atomic_load(&r->steps_cancelled));
    add_counter(s, "steps_repeated", (double)atomic_load(&r->steps_repeated));
    add_counter(s, "weights_bytes_read", (double)w.bytes_read);
    add_counter(s, "weights_bytes_pinned", (double)w.bytes_pinned);
    add_counter(s, "weights_seconds_waited", (double)w.us_waited * 1e-6);
    add_counter(s, "experts_bytes_read", (double)x.bytes_read);
    add_counter(s, "experts_tiles_read", (double)x.tiles_read);
    add_counter(s, "experts_tiles_hit", (double)x.tiles_hit);
    add_counter(s, "experts_seconds_waited", (double)x.us_waited * 1e-6);
    add_counter(s, "experts_requests", (double)x.requests);
    add_counter(s, "experts_requests_resent", (double)x.resent);
}

static void fill_peer(struct stats *s, const struct account *a, size_t i)
{
    struct coverage_peer known;
    struct link_status *status = &s->status[i];
    Kapok__PeerStats *p = &s->peer[i];
    coverage_peer(a->coverage, i, &known);
    link_status(known.link, status);
    kapok__peer_stats__init(p);
    p->address = (char *)link_address(known.link);
    p->state = (char *)link_state_name(status->state);
    p->reason = status->reason;
    p->age = status->age;
    p->bytes_sent = status->bytes_sent;
    p->bytes_received = status->bytes_received;
    p->requests = status->requests;
    p->straggler = experts_straggler(a->runner->experts, i);
    p->tiles = tile_set_count(&known.tiles, a->runner->shape);
    s->peers[i] = p;
}

void account_stats(const struct account *a, struct link_request *q)
{
    struct stats s;
    Kapok__Reply reply = KAPOK__REPLY__INIT;

    kapok__stats_reply__init(&s.reply);
    fill_counters(&s, a->runner);
    areas_write(&s.areas, a->memory, &s.reply);
    for (size_t i = 0; i < a->coverage->peers; i++)
        fill_peer(&s, a, i);
    s.reply.n_peers = a->coverage->peers;
    s.reply.peers = s.peers;
    runner_describe(a->runner, s.now, sizeof s.now);
    s.reply.now = s.now;
    reply.body_case = KAPOK__REPLY__BODY_STATS;
    reply.stats = &s.reply;
    link_server_reply(q, &reply, NULL, 0);
}
