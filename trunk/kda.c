/*
 * A head of a sequence is a unit of work: its state (64 KB at the released shape) stays in a
 * thread's cache while all rows pass. The state of a head is copied from the base to the tip
 * and advanced there, so whatever happens to the step, the base is untouched.
 */
#include "trunk/kda.h"

#include <math.h>
#include <string.h>

#include "trunk/parallel.h"
#include "trunk/product.h"
#include "trunk/rowwise.h"
#include "trunk/vectors.h"

#define KDA_EPS  1e-6 /* of the L2 norms (model.md 3.3 step 3) */
#define KDA_TAPS (STATES_TAPS + 1)
#define DIM_MOST 4096 /* what proto/shape.c admits */

struct kda_work {
    struct pass *pass;
    uint32_t layer;
    const float *conv[3];              /* [heads * dim][taps] of q, k, v */
    const float *rate, *bias, *o_norm; /* [heads], [heads * dim], [dim] */
    const float *into[3];              /* [rows][heads * dim], q k v before the convolutions */
    float *z;                          /* decay's input, then the heads' output */
    const float *beta, *gate;          /* [rows][heads] (after sigmoid), [rows][heads * dim] */
    float q_scale;                     /* dim^-0.5 */
};

/* A head's own vectors, in the thread's floats. */
struct head_room {
    float *q, *k, *v, *alpha, *scratch;
};

static struct head_room head_room(const struct pass *p, unsigned thread)
{
    size_t n = pass_room(p->shape->kda_dim);
    float *own = pass_own(p, thread);
    return (struct head_room){own, own + n, own + 2 * n, own + 3 * n, own + 4 * n};
}

size_t kda_own_room(const struct shape *s)
{
    return 5 * pass_room(s->kda_dim);
}

/* ---- one head --------------------------------------------------------------------------- */

struct head {
    const struct kda_work *work;
    const struct batch_run *run;
    struct states_half base, tip;
    size_t head, inner, dim;
    bool fresh;
};

/* What went into convolution `stream` at row `row` of the run, for this head; rows before the
 * first are the base's history. */
static const float *row_into(const struct head *h, unsigned stream, int64_t row)
{
    static const float nothing[DIM_MOST];
    size_t at = h->head * h->dim;
    if (row >= 0)
        return h->work->into[stream] + (h->run->first + (size_t)row) * h->inner + at;
    if (h->fresh)
        return nothing;
    size_t slot = (size_t)(STATES_TAPS + row);
    return h->base.history + (stream * STATES_TAPS + slot) * h->inner + at;
}

static void convolve(const struct head *h, unsigned stream, uint32_t row, float *out)
{
    const float *u[KDA_TAPS];
    for (int j = 0; j < KDA_TAPS; j++)
        u[j] = row_into(h, stream, (int64_t)row - STATES_TAPS + j);
    const float *w = h->work->conv[stream] + h->head * h->dim * KDA_TAPS;
    h->work->pass->kernels->short_conv(out, u, w, h->dim);
}

static void record_row(const struct head *h, uint32_t row, const struct head_room *m,
                       float beta)
{
    const struct states *ss = h->work->pass->states;
    size_t at = h->head * h->dim, bytes = h->dim * sizeof(float);
    struct states_record r = states_record(ss, h->run->state, h->work->layer, row);
    memcpy(r.k + at, m->k, bytes);
    memcpy(r.v + at, m->v, bytes);
    memcpy(r.alpha + at, m->alpha, bytes);
    r.beta[h->head] = beta;
    for (unsigned stream = 0; stream < 3; stream++)
        memcpy(r.into[stream] + at, row_into(h, stream, row), bytes);
}

static void head_row(const struct head *h, uint32_t row, const struct head_room *m)
{
    const struct kda_work *w = h->work;
    const struct kernels *k = w->pass->kernels;
    size_t dim = h->dim, t = h->run->first + row, at = t * h->inner + h->head * dim;
    const size_t one[2] = {1, dim};
    float beta = w->beta[t * w->pass->shape->kda_heads + h->head];

    convolve(h, 0, row, m->q);
    convolve(h, 1, row, m->k);
    convolve(h, 2, row, m->v);
    k->l2_norm(m->q, dim, KDA_EPS, w->q_scale);
    k->l2_norm(m->k, dim, KDA_EPS, 1.0f);
    k->kda_decay(m->alpha, w->z + at, w->bias + h->head * dim, w->rate + h->head, one,
                 w->pass->shape->kda_floor);
    if (h->run->rows <= w->pass->states->records)
        record_row(h, row, m, beta);
    struct kda_step step = {
        .state = h->tip.recurrent + h->head * dim * dim,
        .q = m->q,
        .k = m->k,
        .v = m->v,
        .alpha = m->alpha,
        .beta = beta,
        .out = w->z + at,
        .scratch = m->scratch,
        .dim = dim,
    };
    k->kda_step(&step);
    k->rms_norm(w->z + at, w->z + at, w->o_norm, dim, w->pass->shape->norm_eps);
    k->gate(w->z + at, w->z + at, w->gate + at, dim);
}

/* The tip's history: the last rows that went into the convolutions. */
static void keep_history(const struct head *h)
{
    for (unsigned stream = 0; stream < 3; stream++)
        for (unsigned slot = 0; slot < STATES_TAPS; slot++) {
            int64_t row = (int64_t)h->run->rows - STATES_TAPS + slot;
            float *out = h->tip.history + (stream * STATES_TAPS + slot) * h->inner;
            memcpy(out + h->head * h->dim, row_into(h, stream, row), h->dim * sizeof *out);
        }
}

static void run_head(const struct kda_work *w, const struct batch_run *run, size_t head,
                     unsigned thread)
{
    const struct shape *s = w->pass->shape;
    struct states *ss = w->pass->states;
    size_t dim = s->kda_dim, bytes = dim * dim * sizeof(float);
    struct head h = {
        .work = w,
        .run = run,
        .base = states_base(ss, run->state, w->layer),
        .tip = states_tip(ss, run->state, w->layer),
        .head = head,
        .inner = (size_t)s->kda_heads * dim,
        .dim = dim,
        .fresh = states_is_fresh(run->state),
    };
    float *tip = h.tip.recurrent + head * dim * dim;
    if (h.fresh)
        memset(tip, 0, bytes);
    else
        memcpy(tip, h.base.recurrent + head * dim * dim, bytes);
    struct head_room m = head_room(w->pass, thread);
    for (uint32_t row = 0; row < run->rows; row++)
        head_row(&h, row, &m);
    keep_history(&h);
}

static void run_heads(void *context, struct parallel_range range)
{
    const struct kda_work *w = context;
    size_t heads = w->pass->shape->kda_heads;
    for (size_t i = range.first; i < range.end; i++)
        run_head(w, &w->pass->batch.run[i / heads], i % heads, range.thread);
}

/* ---- the layer -------------------------------------------------------------------------- */

size_t kda_room(const struct shape *s, size_t rows)
{
    size_t inner = (size_t)s->kda_heads * s->kda_dim;
    return 3 * pass_room(inner * KDA_TAPS) + pass_room(inner) + 4 * pass_room(s->kda_dim) +
           pass_room(s->kda_heads) + 5 * pass_room(rows * inner) +
           pass_room(rows * s->kda_heads) + pass_room(rows * s->kda_dim) +
           pass_room(rows * kernels_padded(s->kda_dim)) +
           pass_room(rows * kernels_padded(inner));
}

static void take_vectors(struct kda_work *w)
{
    struct pass *p = w->pass;
    const struct shape *s = p->shape;
    size_t inner = (size_t)s->kda_heads * s->kda_dim;
    w->conv[0] = vectors_take(p, WEIGHTS_Q_CONV, inner * KDA_TAPS);
    w->conv[1] = vectors_take(p, WEIGHTS_K_CONV, inner * KDA_TAPS);
    w->conv[2] = vectors_take(p, WEIGHTS_V_CONV, inner * KDA_TAPS);
    /* The release pads this one to kda_dim numbers; a head has one. */
    const float *a_log = vectors_take(p, WEIGHTS_A_LOG, s->kda_dim);
    float *rate = pass_floats(p, s->kda_heads);
    for (size_t i = 0; !p->error && i < s->kda_heads; i++)
        rate[i] = kernels_exp(a_log[i]);
    w->rate = rate;
    w->bias = vectors_take(p, WEIGHTS_DT_BIAS, inner);
    w->o_norm = vectors_take(p, WEIGHTS_O_NORM, s->kda_dim);
}

static void project(struct kda_work *w, const float *x)
{
    struct pass *p = w->pass;
    const struct shape *s = p->shape;
    size_t rows = p->batch.rows, inner = (size_t)s->kda_heads * s->kda_dim;
    static const enum weights_role into[3] = {WEIGHTS_Q, WEIGHTS_K, WEIGHTS_V};
    for (unsigned i = 0; i < 3; i++) {
        float *y = pass_floats(p, rows * inner);
        product_run(p, into[i], x, y, rows);
        w->into[i] = y;
    }
    float *narrow = pass_floats(p, rows * s->kda_dim);
    float *lane = pass_floats(p, rows * kernels_padded(s->kda_dim));
    product_run(p, WEIGHTS_F_A, x, narrow, rows);
    rowwise_lane(p, lane, narrow, rows, s->kda_dim);
    w->z = pass_floats(p, rows * inner);
    product_run(p, WEIGHTS_F_B, lane, w->z, rows);
    float *beta = pass_floats(p, rows * s->kda_heads);
    product_run(p, WEIGHTS_B, x, beta, rows);
    if (!p->error)
        p->kernels->sigmoid(beta, beta, rows * s->kda_heads);
    w->beta = beta;
    float *gate = pass_floats(p, rows * inner);
    product_run(p, WEIGHTS_G, x, gate, rows);
    w->gate = gate;
}

void kda_run(struct pass *p, uint32_t layer, const float *x, float *out)
{
    const struct shape *s = p->shape;
    size_t rows = p->batch.rows, inner = (size_t)s->kda_heads * s->kda_dim;
    size_t mark = pass_mark(p);
    struct kda_work w = {.pass = p, .layer = layer};
    w.q_scale = (float)(1 / sqrt(s->kda_dim));
    take_vectors(&w);
    project(&w, x);
    if (!p->error)
        parallel_run(p->threads, (size_t)p->batch.runs * s->kda_heads, 1, run_heads, &w);
    float *lane = pass_floats(p, rows * kernels_padded(inner));
    rowwise_lane(p, lane, w.z, rows, inner);
    product_run(p, WEIGHTS_O, lane, out, rows);
    pass_release(p, mark);
}

/* ---- committing a part of the pending rows ---------------------------------------------- */

struct replay_work {
    struct pass *pass;
    struct state *state;
    uint32_t accepted;
};

static void replay_history(const struct replay_work *w, uint32_t layer, size_t head)
{
    const struct shape *s = w->pass->shape;
    struct states_half base = states_base(w->pass->states, w->state, layer);
    size_t inner = (size_t)s->kda_heads * s->kda_dim, at = head * s->kda_dim;
    size_t bytes = s->kda_dim * sizeof(float);
    for (unsigned i = 0; i < 3 * STATES_TAPS; i++) {
        unsigned stream = i / STATES_TAPS, slot = i % STATES_TAPS;
        float *out = base.history + i * inner + at;
        uint32_t from = slot + w->accepted; /* counted from the oldest of the history */
        if (from >= STATES_TAPS) {
            uint32_t row = from - STATES_TAPS;
            struct states_record r = states_record(w->pass->states, w->state, layer, row);
            memcpy(out, r.into[stream] + at, bytes);
        } else if (states_is_fresh(w->state)) {
            memset(out, 0, bytes);
        } else {
            memcpy(out, base.history + (stream * STATES_TAPS + from) * inner + at, bytes);
        }
    }
}

static void replay_head(const struct replay_work *w, uint32_t layer, size_t head,
                        const struct head_room *m)
{
    size_t dim = w->pass->shape->kda_dim, at = head * dim;
    struct states_half base = states_base(w->pass->states, w->state, layer);
    float *state = base.recurrent + head * dim * dim;
    if (states_is_fresh(w->state))
        memset(state, 0, dim * dim * sizeof *state);
    for (uint32_t row = 0; row < w->accepted; row++) {
        struct states_record r = states_record(w->pass->states, w->state, layer, row);
        struct kda_step step = {
            .state = state,
            .q = m->q, /* not looked at: no output is wanted */
            .k = r.k + at,
            .v = r.v + at,
            .alpha = r.alpha + at,
            .beta = r.beta[head],
            .scratch = m->scratch,
            .dim = dim,
        };
        w->pass->kernels->kda_step(&step);
    }
    replay_history(w, layer, head);
}

static void replay_heads(void *context, struct parallel_range range)
{
    const struct replay_work *w = context;
    const struct states *ss = w->pass->states;
    size_t heads = w->pass->shape->kda_heads;
    struct head_room m = head_room(w->pass, range.thread);
    for (size_t i = range.first; i < range.end; i++) {
        uint32_t layer = ss->options.layer_first + (uint32_t)(i / heads);
        if (!w->pass->shape->is_mla[layer])
            replay_head(w, layer, i % heads, &m);
    }
}

void kda_replay(struct pass *p, struct state *st, uint32_t accepted)
{
    struct replay_work w = {p, st, accepted};
    size_t layers = p->states->options.layer_end - p->states->options.layer_first;
    parallel_run(p->threads, layers * p->shape->kda_heads, 1, replay_heads, &w);
}
