/* A stage without links: see the header. */
#include "tests/trunk/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trunk/kda.h"

#define RIG_BLOCK 16384 /* bytes, small: matrices have several blocks */

/* ---- experts that exist nowhere ---------------------------------------------------------- */

static void hint(void *context, const struct routing *r)
{
    struct rig *g = context;
    g->routing = *r;
    if (r->layer == g->cancel_layer)
        atomic_store(&g->runner.cancelled, true);
}

static void begin(void *context, const struct routing *r, const float *z)
{
    struct rig *g = context;
    assert_int_equal(g->routing.layer, r->layer);
    g->z = z;
}

/* Expert e gives z scaled by a number of its own. */
static int finish(void *context, int64_t *sum, char *ret_reason, size_t size)
{
    struct rig *g = context;
    const struct routing *r = &g->routing;
    size_t latent = g->checkpoint.shape.latent;
    memset(sum, 0, r->rows * latent * sizeof *sum);
    if (!runner_wants(&g->runner)) {
        snprintf(ret_reason, size, "cancelled by the test");
        return -ECANCELED;
    }
    for (uint32_t t = 0; t < r->rows; t++)
        for (uint32_t i = 0; i < r->chosen; i++) {
            size_t at = (size_t)t * r->chosen + i;
            float weight = r->weight[at] * (0.25f + 0.125f * r->expert[at]);
            assert_int_equal(g->runner.pass.kernels->accumulate(
                                 sum + t * latent, g->z + t * latent, weight, latent),
                             0);
        }
    return 0;
}

static void drop(void *context)
{
    ((struct rig *)context)->dropped++;
}

/* ---- opening ----------------------------------------------------------------------------- */

static void *take(struct rig *r, size_t bytes)
{
    void *area;
    assert_int_equal(memory_take(&r->memory, "rig", bytes, &area), 0);
    return area;
}

static void open_pass(struct rig *r, const struct rig_options *o)
{
    struct runner *run = &r->runner;
    struct pass *p = &run->pass;
    const char *reason;
    p->shape = run->shape = &r->checkpoint.shape;
    p->kernels = kernels_best(o->isa, &reason);
    assert_non_null(p->kernels);
    p->states = &r->states;
    r->gather = (struct gather){r, hint, begin, finish, drop};
    p->gather = &r->gather;
    p->threads = o->threads;
    p->scratch_room = r->sizing.scratch;
    p->scratch = take(r, p->scratch_room * sizeof(float));
    p->own_room = o->own_room ? o->own_room : r->sizing.own;
    p->own = take(r, p->own_room * o->threads * sizeof(float));
    p->source = take(r, r->sizing.source * sizeof(float));
    p->rows_most = o->rows;
    p->batch.run = take(r, o->sequences * sizeof *p->batch.run);
}

static void open_runner(struct rig *r, const struct rig_options *o)
{
    struct runner *run = &r->runner;
    run->sizing = &r->sizing;
    run->output = take(r, r->sizing.output);
    run->place = take(r, o->rows * sizeof *run->place);
    run->run_of = take(r, o->rows * sizeof *run->run_of);
    run->wanted = take(r, o->rows * sizeof *run->wanted);
    run->token = take(r, o->rows * sizeof *run->token);
    pthread_mutex_init(&run->lock, NULL);
}

/* Experts of no layer: nothing is awaited, and only the counters are looked at. */
static void open_no_experts(struct rig *r)
{
    static const uint32_t none[2];
    struct links_options lo = {.role = "test", .payload_most = 1 << 16};
    assert_int_equal(links_open(&r->links, &lo), 0);
    assert_int_equal(coverage_open(&r->coverage, &r->checkpoint.shape, none, r->links), 0);
    struct experts_options xo = {.shape = &r->checkpoint.shape,
                                 .coverage = &r->coverage,
                                 .rows_most = 1,
                                 .wanted = runner_wants,
                                 .context = &r->runner};
    assert_int_equal(experts_open(&r->runner.experts, &xo, &r->memory), 0);
}

void rig_open(struct rig *r, const char *folder, const struct rig_options *o)
{
    struct problems p;
    problems_init(&p);
    memset(r, 0, sizeof *r);
    r->cancel_layer = UINT32_MAX;
    memory_init(&r->memory, 0);
    assert_int_equal(checkpoint_open(&r->checkpoint, folder, &p), 0);
    struct sizing_request q = {.shape = &r->checkpoint.shape, .plan = &r->plan};
    q.layers[0] = o->layers[0];
    q.layers[1] = o->layers[1] ? o->layers[1] : r->checkpoint.shape.layers;
    q.threads = o->threads;
    q.budget = (uint64_t)1 << 32;
    q.rows = o->rows;
    q.sequences = o->sequences;
    q.positions = o->positions;
    assert_int_equal(
        weights_plan_open(&r->plan, &r->checkpoint, q.layers[0], q.layers[1], RIG_BLOCK, &p),
        0);
    assert_int_equal(sizing_choose(&r->sizing, &q, &p), 0);
    assert_int_equal(
        states_open(&r->states, &r->checkpoint.shape, &r->sizing.states, &r->memory), 0);
    open_pass(r, o);
    open_runner(r, o);
    open_no_experts(r);
    struct weights_options wo = {weights_floor(&r->plan), o->pinned, 8, true};
    assert_int_equal(
        weights_open(&r->runner.pass.weights, &r->checkpoint, &r->plan, &wo, &r->memory, &p),
        0);
    assert_int_equal(weights_start(r->runner.pass.weights), 0);
    if (q.layers[0] == 0) {
        assert_int_equal(embed_open(&r->embed, &r->checkpoint, true, &r->memory, &p), 0);
        r->runner.embed = &r->embed;
    }
}

void rig_close(struct rig *r)
{
    weights_close(r->runner.pass.weights);
    experts_close(r->runner.experts);
    links_close(r->links);
    coverage_close(&r->coverage);
    embed_close(&r->embed);
    weights_plan_close(&r->plan);
    checkpoint_close(&r->checkpoint);
    memory_fini(&r->memory);
    pthread_mutex_destroy(&r->runner.lock);
}

void rig_sequence(struct rig *r, uint64_t id, uint32_t positions)
{
    char why[256];
    assert_int_equal(states_begin(&r->states, id, positions, why, sizeof why), 0);
}

/* ---- steps ------------------------------------------------------------------------------- */

void rig_step_begin(struct rig_step *s)
{
    memset(s, 0, sizeof *s);
    kapok__request__init(&s->request);
    kapok__step__init(&s->body);
    s->request.body_case = KAPOK__REQUEST__BODY_STEP;
    s->request.step = &s->body;
    s->body.sequence = s->sequence;
    s->body.position = s->position;
    s->body.token = s->token;
    s->body.logits = s->logits;
    s->body.commit_sequence = s->commit_sequence;
    s->body.commit_length = s->commit_length;
}

void rig_step_row(struct rig_step *s, uint64_t sequence, uint32_t position, uint32_t token)
{
    size_t i = s->body.n_sequence++;
    s->body.n_position = s->body.n_token = s->body.n_logits = i + 1;
    s->sequence[i] = sequence;
    s->position[i] = position;
    s->token[i] = token;
    s->logits[i] = 1;
}

void rig_step_commit(struct rig_step *s, uint64_t sequence, uint32_t length)
{
    size_t i = s->body.n_commit_sequence++;
    s->body.n_commit_length = i + 1;
    s->commit_sequence[i] = sequence;
    s->commit_length[i] = length;
}

int rig_step_run(struct rig *r, struct rig_step *s)
{
    struct msg m = {.request = &s->request,
                    .payload = (const uint8_t *)s->input,
                    .payload_bytes = s->input_bytes};
    int error = runner_step_run(&r->runner, &m, s->why, sizeof s->why);
    atomic_store(&r->runner.cancelled, false);
    return error;
}

void rig_generate(struct rig *r, uint64_t id, const uint32_t *tokens, const uint32_t range[2],
                  uint32_t chunk, float *out)
{
    struct rig_step s;
    for (uint32_t at = range[0]; at < range[1]; at += chunk) {
        rig_step_begin(&s);
        rig_step_commit(&s, id, at);
        for (uint32_t i = at; i < at + chunk && i < range[1]; i++)
            rig_step_row(&s, id, i, tokens[i]);
        if (rig_step_run(r, &s))
            fail_msg("%s", s.why);
        memcpy(out, r->runner.output, r->runner.answer_bytes);
        out += r->runner.answer_bytes / sizeof *out;
    }
}
