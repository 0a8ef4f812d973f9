/*
 * Latent attention. The cache holds per position one row, latent and shared key together in
 * lane order, that all heads read; W_k and W_v of a head are used in the same block of the
 * weights.
 *
 * For a block of heads, the queries of all heads and rows enter the latent space first (they
 * lie [head][row of the run], run after run). Then attention works on *bundles*: up to
 * BUNDLE_MOST neighbouring queries of a run go over the cached rows together, page by page, so
 * that a cached row is read once for all of them, whether they are rows of a prefill chunk or
 * heads of one row. How queries are bundled changes no result.
 *
 * Of a bundle all queries look at as many positions as the last of its run; what a query may
 * not see gets weight zero, which changes nothing in a chain of fused additions.
 */
#include "trunk/mla.h"

#include <math.h>
#include <string.h>

#include "trunk/parallel.h"
#include "trunk/product.h"
#include "trunk/rowwise.h"
#include "trunk/vectors.h"

#define BUNDLE_MOST     16
#define BUNDLE_AT_LEAST 4 /* queries a thread's scores always have room for */
#define SCORES_LEAST    65536

struct mla_work {
    struct pass *pass;
    uint32_t layer;
    const float *q; /* [rows][heads * (nope + pe)] */
    float *out;     /* [rows][heads * v_dim] */
    float scale;    /* (nope + pe)^-0.5 */
    size_t joint;   /* floats of a latent with its key, padded */
    /* Of the block of heads at hand: */
    const struct weights_block *block;
    size_t head, heads; /* first, count */
    float *query;       /* [heads of the block x rows][joint] */
};

static size_t query_width(const struct shape *s)
{
    return (size_t)s->nope + s->pe;
}

/* The queries of a run: [head of the block][row of the run][joint]. */
static float *run_queries(const struct mla_work *w, const struct batch_run *run)
{
    return w->query + run->first * w->heads * w->joint;
}

static const uint8_t *head_rows(const struct mla_work *w, size_t head, size_t row)
{
    const struct shape *s = w->pass->shape;
    size_t at = head * ((size_t)s->nope + s->v_dim) + row;
    return (const uint8_t *)w->block->data + at * w->block->entry->row_bytes;
}

/* ---- queries into the latent space ------------------------------------------------------ */

static void absorb(const struct mla_work *w, const struct batch_run *run, size_t head,
                   float *own)
{
    const struct shape *s = w->pass->shape;
    size_t width = query_width(s), stride = s->heads * width;
    const float *q = w->q + run->first * stride + (w->head + head) * width;
    float *query = run_queries(w, run) + head * run->rows * w->joint;
    struct combination c = {
        .w = head_rows(w, head, 0),
        .w_stride = w->block->entry->row_bytes,
        .rows = s->nope,
        .cols = s->kv_rank,
        .x = q,
        .x_stride = stride,
        .y = query,
        .y_stride = w->joint,
        .vectors = run->rows,
        .first = 1,
    };
    w->pass->kernels->bf16_combine(&c);
    for (uint32_t t = 0; t < run->rows; t++, query += w->joint) {
        memcpy(own, query, s->kv_rank * sizeof *own);
        memcpy(own + s->kv_rank, q + t * stride + s->nope, s->pe * sizeof *own);
        w->pass->kernels->lane_order(query, own, (size_t)s->kv_rank + s->pe);
    }
}

static void absorb_heads(void *context, struct parallel_range range)
{
    const struct mla_work *w = context;
    const struct batch *b = &w->pass->batch;
    for (size_t i = range.first; i < range.end; i++)
        absorb(w, &b->run[i / w->heads], i % w->heads, pass_own(w->pass, range.thread));
}

/* ---- attention -------------------------------------------------------------------------- */

struct bundle {
    const struct batch_run *run;
    size_t first, queries; /* of the run's */
    size_t positions;      /* that the run's last row sees */
};

/* Queries of this run that go together. */
static size_t bundle_size(const struct mla_work *w, const struct batch_run *run)
{
    size_t fit = w->pass->own_room / (run->position + run->rows);
    return fit < BUNDLE_MOST ? fit : BUNDLE_MOST;
}

static size_t run_bundles(const struct mla_work *w, const struct batch_run *run)
{
    size_t size = bundle_size(w, run);
    return (run->rows * w->heads + size - 1) / size;
}

static struct bundle bundle_find(const struct mla_work *w, size_t i)
{
    const struct batch_run *run = w->pass->batch.run;
    for (size_t n; i >= (n = run_bundles(w, run)); run++)
        i -= n;
    size_t size = bundle_size(w, run), all = run->rows * w->heads, first = i * size;
    size_t queries = all - first < size ? all - first : size;
    return (struct bundle){run, first, queries, (size_t)run->position + run->rows};
}

/* Cached rows at `position` and behind it in the same page. */
static size_t page_rows(const struct bundle *b, size_t position)
{
    size_t left = b->positions - position;
    return left < STATES_PAGE ? left : STATES_PAGE;
}

static void bundle_scores(const struct mla_work *w, const struct bundle *b, const float *query,
                          float *score)
{
    const struct pass *p = w->pass;
    for (size_t at = 0; at < b->positions; at += STATES_PAGE) {
        struct product product = {
            .w = states_latent(p->states, b->run->state, w->layer, (uint32_t)at),
            .w_stride = w->joint * sizeof(float),
            .rows = page_rows(b, at),
            .cols = (size_t)p->shape->kv_rank + p->shape->pe,
            .x = query,
            .x_stride = w->joint,
            .y = score + at,
            .y_stride = b->positions,
            .vectors = b->queries,
        };
        p->kernels->f32_product(&product);
    }
}

/* Softmax of every query over what it may see. */
static void bundle_weights(const struct mla_work *w, const struct bundle *b, float *score)
{
    for (size_t i = 0; i < b->queries; i++, score += b->positions) {
        size_t sees = b->run->position + (b->first + i) % b->run->rows + 1;
        for (size_t j = 0; j < sees; j++)
            score[j] = score[j] * w->scale;
        w->pass->kernels->softmax(score, sees);
        memset(score + sees, 0, (b->positions - sees) * sizeof *score);
    }
}

/* The numbers of a joint row that are no latents, where the two share a group of lane order. */
static void clear_keys(const struct shape *s, float *row)
{
    for (size_t i = s->kv_rank; i < kernels_padded(s->kv_rank); i++) {
        size_t in = i % KERNELS_GROUP;
        row[i - in + (in & 1) * (KERNELS_GROUP / 2) + in / 2] = 0;
    }
}

static void bundle_latents(const struct mla_work *w, const struct bundle *b, const float *score,
                           float *out)
{
    const struct pass *p = w->pass;
    for (size_t at = 0; at < b->positions; at += STATES_PAGE) {
        struct combination c = {
            .w = states_latent(p->states, b->run->state, w->layer, (uint32_t)at),
            .w_stride = w->joint * sizeof(float),
            .rows = page_rows(b, at),
            .cols = kernels_padded(p->shape->kv_rank),
            .x = score + at,
            .x_stride = b->positions,
            .y = out,
            .y_stride = w->joint,
            .vectors = b->queries,
            .first = at == 0,
        };
        p->kernels->f32_combine(&c);
    }
    for (size_t i = 0; i < b->queries; i++)
        clear_keys(p->shape, out + i * w->joint);
}

/* The result replaces the queries. */
static void attend(void *context, struct parallel_range range)
{
    const struct mla_work *w = context;
    float *score = pass_own(w->pass, range.thread);
    for (size_t i = range.first; i < range.end; i++) {
        struct bundle b = bundle_find(w, i);
        float *query = run_queries(w, b.run) + b.first * w->joint;
        bundle_scores(w, &b, query, score);
        bundle_weights(w, &b, score);
        bundle_latents(w, &b, score, query);
    }
}

/* ---- values out of the latent space ----------------------------------------------------- */

static void value_heads(void *context, struct parallel_range range)
{
    const struct mla_work *w = context;
    const struct shape *s = w->pass->shape;
    size_t stride = (size_t)s->heads * s->v_dim;
    for (size_t i = range.first; i < range.end; i++) {
        const struct batch_run *run = &w->pass->batch.run[i / w->heads];
        size_t head = i % w->heads;
        struct product product = {
            .w = head_rows(w, head, s->nope),
            .w_stride = w->block->entry->row_bytes,
            .rows = s->v_dim,
            .cols = s->kv_rank,
            .x = run_queries(w, run) + head * run->rows * w->joint,
            .x_stride = w->joint,
            .y = w->out + run->first * stride + (w->head + head) * s->v_dim,
            .y_stride = stride,
            .vectors = run->rows,
        };
        w->pass->kernels->bf16_product(&product);
    }
}

static void run_block(struct mla_work *w, const struct weights_block *block)
{
    struct pass *p = w->pass;
    size_t mark = pass_mark(p), bundles = 0;
    size_t per_head = (size_t)p->shape->nope + p->shape->v_dim;
    w->block = block;
    w->head = block->row / per_head;
    w->heads = block->rows / per_head;
    w->query = pass_floats(p, p->batch.rows * w->heads * w->joint);
    for (uint32_t i = 0; i < p->batch.runs; i++)
        bundles += run_bundles(w, &p->batch.run[i]);
    parallel_run(p->threads, p->batch.runs * w->heads, 1, absorb_heads, w);
    parallel_run(p->threads, bundles, 1, attend, w);
    parallel_run(p->threads, p->batch.runs * w->heads, 1, value_heads, w);
    pass_release(p, mark);
}

/* ---- the layer -------------------------------------------------------------------------- */

/* The rows' latents, normalised, and keys go to the cache. */
static void keep_latents(const struct mla_work *w, const float *kv, const float *gain)
{
    struct pass *p = w->pass;
    const struct shape *s = p->shape;
    size_t width = (size_t)s->kv_rank + s->pe;
    float *own = pass_own(p, 0);
    for (uint32_t i = 0; !p->error && i < p->batch.runs; i++) {
        const struct batch_run *run = &p->batch.run[i];
        for (uint32_t t = 0; t < run->rows; t++) {
            const float *row = kv + (run->first + t) * width;
            float *to = states_latent(p->states, run->state, w->layer, run->position + t);
            p->kernels->rms_norm(own, row, gain, s->kv_rank, s->norm_eps);
            memcpy(own + s->kv_rank, row + s->kv_rank, s->pe * sizeof *own);
            p->kernels->lane_order(to, own, width);
        }
    }
}

static float *project(struct mla_work *w, const float *x)
{
    struct pass *p = w->pass;
    const struct shape *s = p->shape;
    size_t rows = p->batch.rows, width = (size_t)s->kv_rank + s->pe;
    float *q_a = pass_floats(p, rows * s->q_rank);
    float *lane = pass_floats(p, rows * kernels_padded(s->q_rank));
    float *q = pass_floats(p, rows * s->heads * query_width(s));
    float *kv = pass_floats(p, rows * width);
    product_run(p, WEIGHTS_Q_A, x, q_a, rows);
    rowwise_norm(p, q_a, vectors_take(p, WEIGHTS_Q_A_NORM, s->q_rank), rows, s->q_rank);
    rowwise_lane(p, lane, q_a, rows, s->q_rank);
    product_run(p, WEIGHTS_Q_B, lane, q, rows);
    product_run(p, WEIGHTS_KV_A, x, kv, rows);
    keep_latents(w, kv, vectors_take(p, WEIGHTS_KV_A_NORM, s->kv_rank));
    return q;
}

static void attention(struct mla_work *w)
{
    struct weights_block block;
    do {
        if (!pass_block(w->pass, WEIGHTS_KV_B, &block))
            return;
        run_block(w, &block);
        weights_give(w->pass->weights, &block);
    } while (!block.last);
}

void mla_run(struct pass *p, uint32_t layer, const float *x, float *out)
{
    const struct shape *s = p->shape;
    size_t rows = p->batch.rows, inner = (size_t)s->heads * s->v_dim;
    size_t mark = pass_mark(p);
    struct mla_work w = {.pass = p, .layer = layer, .joint = states_latent_row(s)};
    w.scale = (float)(1 / sqrt((double)query_width(s)));
    w.q = project(&w, x);
    w.out = pass_floats(p, rows * inner);
    attention(&w);
    float *gate = pass_floats(p, rows * inner);
    float *lane = pass_floats(p, rows * kernels_padded(inner));
    product_run(p, WEIGHTS_G, x, gate, rows);
    rowwise_gate(p, w.out, gate, rows, inner);
    rowwise_lane(p, lane, w.out, rows, inner);
    product_run(p, WEIGHTS_O, lane, out, rows);
    pass_release(p, mark);
}

size_t mla_room(const struct shape *s, size_t rows, size_t heads)
{
    size_t inner = (size_t)s->heads * s->v_dim;
    size_t after = pass_room(rows * inner) + pass_room(rows * kernels_padded(inner));
    size_t queries = pass_room(rows * heads * states_latent_row(s));
    return pass_room(rows * s->q_rank) + pass_room(rows * kernels_padded(s->q_rank)) +
           pass_room(rows * s->heads * query_width(s)) +
           pass_room(rows * ((size_t)s->kv_rank + s->pe)) + pass_room(s->q_rank) +
           pass_room(s->kv_rank) + pass_room(rows * inner) +
           (after > queries ? after : queries);
}

size_t mla_own_room(const struct shape *s, size_t positions)
{
    size_t scores = positions * BUNDLE_AT_LEAST;
    scores = scores > SCORES_LEAST ? scores : SCORES_LEAST;
    size_t row = states_latent_row(s);
    return scores > row ? scores : row;
}
