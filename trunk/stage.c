/*
 * The stage's parts, in the order in which they need each other. Memory: sizing.c decides; the
 * areas are taken here and by the parts.
 */
#include "trunk/stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "proto/compute.h"
#include "trunk/reception.h"

#define REQUESTS    32                  /* under way at once */
#define BLOCK_BYTES ((uint32_t)4 << 20) /* of weights */
#define READS       32                  /* of weights in flight */
#define PAYLOAD_MIN ((uint64_t)1 << 16)

struct stage {
    struct stage_options options;
    struct checkpoint checkpoint;
    struct weights_plan plan;
    struct sizing sizing;
    struct memory memory;
    uint32_t layers[2];
    uint8_t secret[SECRET_BYTES];
    const struct kernels *kernels;
    struct links *links;
    struct coverage coverage;
    struct experts *experts;
    struct gather gather;
    struct weights *weights;
    struct states states;
    struct embed embed;
    struct runner runner;
    struct reception reception;
    struct queue incoming;
    struct link_server *server;
    bool runner_runs, reception_runs;
};

/* ---- options ----------------------------------------------------------------------------- */

static int choose_kernels(struct stage *s, struct problems *p)
{
    const char *reason = "";
    s->kernels = kernels_best(s->options.isa, &reason);
    if (s->kernels)
        return 0;
    problems_add(p, "--isa: %s", reason);
    return -EINVAL;
}

static int choose_layers(struct stage *s, struct problems *p)
{
    uint32_t number[SHAPE_LAYERS];
    struct tile_numbers n = {number, SHAPE_LAYERS, 0};
    s->layers[1] = s->checkpoint.shape.layers;
    if (!s->options.layers)
        return 0;
    int r = tile_ranges(&n, "--layers", s->options.layers, s->layers[1], p);
    if (r)
        return r;
    s->layers[0] = number[0];
    s->layers[1] = number[n.count - 1] + 1;
    if (s->layers[1] - s->layers[0] == n.count)
        return 0;
    problems_add(p, "--layers %s: expected one range without gaps, like 0-6",
                 s->options.layers);
    return -EINVAL;
}

/* ---- memory ------------------------------------------------------------------------------ */

static int choose_sizes(struct stage *s, struct problems *p)
{
    const struct sizing_request q = {
        .shape = &s->checkpoint.shape,
        .plan = &s->plan,
        .layers = {s->layers[0], s->layers[1]},
        .threads = (unsigned)s->options.threads,
        .peers = s->options.expertds,
        .budget = s->options.memory,
        .ring = s->options.ring,
        .sequences = s->options.sequences,
        .positions = s->options.context,
        .rows = s->options.rows,
    };
    return sizing_choose(&s->sizing, &q, p);
}

static int take_floats(struct stage *s, const char *name, size_t floats, float **ret_floats)
{
    void *area;
    int r = memory_take(&s->memory, name, floats * sizeof **ret_floats, &area);
    if (!r)
        *ret_floats = area;
    return r;
}

static int take_tables(struct stage *s)
{
    void *area;
    struct runner *r = &s->runner;
    size_t rows = s->sizing.rows_most;
    size_t run_bytes = s->sizing.states.sequences * sizeof *r->pass.batch.run;
    int e =
        memory_take(&s->memory, "row tables", run_bytes + 4 * rows * sizeof *r->place, &area);
    if (e)
        return e;
    r->pass.batch.run = area;
    r->place = (uint32_t *)(r->pass.batch.run + s->sizing.states.sequences);
    r->run_of = r->place + rows;
    r->wanted = r->run_of + rows;
    r->token = r->wanted + rows;
    return 0;
}

static int take_activations(struct stage *s)
{
    struct pass *p = &s->runner.pass;
    const struct sizing *z = &s->sizing;
    int r = take_floats(s, "activations", z->scratch, &p->scratch);
    if (!r)
        r = take_floats(s, "threads", z->own * s->options.threads, &p->own);
    if (!r)
        r = take_floats(s, "residual sources", z->source, &p->source);
    if (!r)
        r = take_floats(s, "answer", (size_t)(z->output / sizeof(float)), &s->runner.output);
    return r ? r : take_tables(s);
}

static int open_experts(struct stage *s)
{
    const struct experts_options o = {
        .shape = &s->checkpoint.shape,
        .coverage = &s->coverage,
        .rows_most = s->sizing.rows_most,
        .deadline = s->options.deadline,
        .wanted = runner_wants,
        .context = &s->runner,
    };
    int r = experts_open(&s->experts, &o, &s->memory);
    if (!r)
        s->gather = experts_gather(s->experts);
    return r;
}

static int open_weights(struct stage *s, struct problems *p)
{
    const struct weights_options o = {s->sizing.ring, s->sizing.pinned, READS,
                                      s->options.buffered};
    return weights_open(&s->weights, &s->checkpoint, &s->plan, &o, &s->memory, p);
}

static int take_memory(struct stage *s, struct problems *p)
{
    s->memory.budget = s->options.memory;
    int r = states_open(&s->states, &s->checkpoint.shape, &s->sizing.states, &s->memory);
    if (!r)
        r = take_activations(s);
    if (!r)
        r = open_experts(s);
    if (r) {
        problems_add(p, "--memory: taking %llu bytes: %s",
                     (unsigned long long)s->options.memory, strerror(-r));
        return r;
    }
    if (s->layers[0] == 0)
        r = embed_open(&s->embed, &s->checkpoint, s->options.buffered, &s->memory, p);
    return r ? r : open_weights(s, p);
}

/* ---- links ------------------------------------------------------------------------------- */

static uint64_t reply_most(const struct stage *s)
{
    uint64_t sums =
        (uint64_t)s->sizing.rows_most * s->checkpoint.shape.latent * sizeof(int64_t);
    return sums > PAYLOAD_MIN ? sums : PAYLOAD_MIN;
}

static int open_links(struct stage *s, struct problems *p)
{
    struct links_options o = {.role = "trunk", .payload_most = reply_most(s)};
    memcpy(o.secret, s->secret, sizeof o.secret);
    memcpy(o.model, s->checkpoint.digest, sizeof o.model);
    int r = links_open(&s->links, &o);
    if (!r)
        r = coverage_open(&s->coverage, &s->checkpoint.shape, s->layers, s->links);
    for (size_t i = 0; !r && i < s->options.expertds; i++) {
        struct link *l;
        r = links_add(s->links, s->options.expertd[i], &l, p);
        if (!r && (r = coverage_add_peer(&s->coverage, l)) != 0)
            problems_add(p, "--expertd: at most %d are possible", COVERAGE_PEERS);
    }
    return r;
}

static int check_expertds(const struct stage *s, struct problems *p)
{
    if (s->options.expertds || !shape_is_moe(&s->checkpoint.shape, s->layers[1] - 1))
        return 0;
    problems_add(p, "--expertd is missing: layers %u-%u have experts", s->layers[0],
                 s->layers[1] - 1);
    return -EINVAL;
}

/* ---- open, start, close ------------------------------------------------------------------ */

static void wire(struct stage *s)
{
    struct runner *r = &s->runner;
    struct pass *p = &r->pass;
    p->shape = r->shape = &s->checkpoint.shape;
    p->kernels = s->kernels;
    p->weights = s->weights;
    p->states = &s->states;
    p->gather = &s->gather;
    p->threads = (unsigned)s->options.threads;
    p->scratch_room = s->sizing.scratch;
    p->own_room = s->sizing.own;
    p->rows_most = s->sizing.rows_most;
    r->sizing = &s->sizing;
    r->embed = s->layers[0] == 0 ? &s->embed : NULL;
    r->experts = s->experts;
    s->reception.incoming = &s->incoming;
    s->reception.account = (struct account){
        .runner = r,
        .coverage = &s->coverage,
        .memory = &s->memory,
    };
}

static int open_parts(struct stage *s, struct problems *p)
{
    const struct stage_options *o = &s->options;
    int r = choose_kernels(s, p);
    if (!r)
        r = secret_load(o->secret, s->secret, p);
    if (!r)
        r = checkpoint_open(&s->checkpoint, o->checkpoint, p);
    if (!r)
        r = choose_layers(s, p);
    if (!r)
        r = check_expertds(s, p);
    if (!r)
        r = weights_plan_open(&s->plan, &s->checkpoint, s->layers[0], s->layers[1], BLOCK_BYTES,
                              p);
    if (!r)
        r = choose_sizes(s, p);
    if (!r)
        r = open_links(s, p);
    if (!r)
        r = take_memory(s, p);
    if (!r)
        r = queue_open(&s->incoming, REQUESTS);
    return r;
}

int stage_open(struct stage **ret_stage, const struct stage_options *o, struct problems *p)
{
    struct stage *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->options = *o;
    if (!s->options.threads)
        s->options.threads = thread_cpus();
    memory_init(&s->memory, 0);
    int r = open_parts(s, p);
    if (r) {
        stage_close(s);
        return r;
    }
    wire(s);
    *ret_stage = s;
    return 0;
}

static int listen_now(struct stage *s, struct problems *p)
{
    uint64_t payload = s->reception.account.payload_most;
    struct link_server_options o = {
        .address = s->options.listen,
        .payload_most = payload,
        .requests = REQUESTS,
        .incoming = &s->incoming,
    };
    memcpy(o.secret, s->secret, sizeof o.secret);
    memcpy(o.model, s->checkpoint.digest, sizeof o.model);
    return link_server_open(&s->server, &o, p);
}

static int start_threads(struct stage *s)
{
    struct account *a = &s->reception.account;
    uint64_t payload = step_rows_bytes(&s->checkpoint.shape, s->layers[0], s->sizing.rows_most);
    a->payload_most = payload > PAYLOAD_MIN ? payload : PAYLOAD_MIN;
    if (getrandom(&a->instance, sizeof a->instance, 0) < 0)
        return -errno;
    int r = weights_start(s->weights);
    if (!r)
        r = links_start(s->links);
    if (!r) {
        r = runner_start(&s->runner, REQUESTS);
        s->runner_runs = !r;
    }
    if (!r) {
        r = reception_start(&s->reception);
        s->reception_runs = !r;
    }
    return r;
}

int stage_start(struct stage *s, struct problems *p)
{
    int r = start_threads(s);
    if (r) {
        problems_add(p, "starting threads: %s", strerror(-r));
        return r;
    }
    return listen_now(s, p);
}

void stage_close(struct stage *s)
{
    if (!s)
        return;
    if (s->incoming.item)
        queue_close(&s->incoming);
    if (s->reception_runs)
        reception_stop(&s->reception);
    if (s->runner_runs)
        runner_stop(&s->runner);
    link_server_close(s->server);
    experts_close(s->experts);
    links_close(s->links);
    coverage_close(&s->coverage);
    weights_close(s->weights);
    embed_close(&s->embed);
    weights_plan_close(&s->plan);
    checkpoint_close(&s->checkpoint);
    memory_fini(&s->memory);
    if (s->incoming.item)
        queue_free(&s->incoming);
    free(s);
}

const char *stage_address(const struct stage *s)
{
    return link_server_address(s->server);
}

void stage_print_memory(const struct stage *s, FILE *out)
{
    memory_print(&s->memory, out);
}

void stage_describe(const struct stage *s, char *text, size_t size)
{
    const struct sizing *z = &s->sizing;
    snprintf(text, size, "layers=%u-%u rows=%u sequences=%u positions=%llu threads=%llu isa=%s",
             s->layers[0], s->layers[1] - 1, z->rows_most, z->states.sequences,
             (unsigned long long)z->states.positions, (unsigned long long)s->options.threads,
             s->kernels->name);
}
