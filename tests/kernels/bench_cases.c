/* What is measured: see bench.h. Thread t of n takes the t-th of n equal parts of the rows. */
#include "tests/kernels/bench.h"

#define POSITIONS 8192 /* of a context, for attention over latents */

struct part {
    size_t first, count;
};

static struct part part_of(const struct bench_thread *t, size_t all)
{
    size_t first = all * t->index / t->threads, end = all * (t->index + 1) / t->threads;
    return (struct part){first, end - first};
}

static void run_read(struct bench_thread *t, size_t vectors)
{
    struct part p = part_of(t, BENCH_SET_BYTES / 256);
    t->nothing += (double)t->d->machine->read_all(t->d->set + p.first * 256, p.count * 256);
}

static void run_copy(struct bench_thread *t, size_t vectors)
{
    struct part p = part_of(t, t->d->state_floats / 64);
    float *at = t->d->state + p.first * 64;
    for (size_t i = 0; i < p.count * 64; i++)
        at[i] = at[i] * 0.5f;
}

static void run_peak(struct bench_thread *t, size_t vectors)
{
    t->nothing += (double)t->d->machine->multiply_add(BENCH_PEAK_FLOPS);
}

static struct product product_of(struct bench_thread *t, size_t cols, size_t vectors)
{
    return (struct product){
        .cols = cols, .x = t->x, .x_stride = cols, .y = t->y, .vectors = vectors};
}

static void run_bf16(struct bench_thread *t, size_t vectors)
{
    struct product p = product_of(t, BENCH_COLS, vectors);
    p.w_stride = 2 * p.cols;
    struct part part = part_of(t, BENCH_SET_BYTES / p.w_stride / (vectors > 3 ? 16 : 1));
    p.w = t->d->set + part.first * p.w_stride;
    p.y_stride = p.rows = part.count;
    t->d->k->bf16_product(&p);
}

static void run_mxfp4(struct bench_thread *t, size_t vectors)
{
    struct product p = product_of(t, BENCH_WIDTH, vectors);
    p.w_stride = p.cols / 2;
    p.scale_stride = p.cols / 32;
    struct part part = part_of(t, BENCH_SET_BYTES / p.w_stride / (vectors > 3 ? 16 : 1));
    p.w = t->d->set + part.first * p.w_stride;
    p.scale = t->d->scale + part.first * p.scale_stride;
    p.y_stride = p.rows = part.count;
    t->nothing += t->d->k->mxfp4_product(&p);
}

/* A band's columns of w2 in a packed tile: rows of 256. */
static void run_band(struct bench_thread *t, size_t vectors)
{
    struct product p = product_of(t, 256, vectors);
    p.w_stride = p.cols / 2;
    p.scale_stride = p.cols / 32;
    struct part part = part_of(t, BENCH_SET_BYTES / p.w_stride / (vectors > 3 ? 64 : 4));
    p.w = t->d->set + part.first * p.w_stride;
    p.scale = t->d->scale + part.first * p.scale_stride;
    p.y_stride = p.rows = part.count;
    t->nothing += t->d->k->mxfp4_product(&p);
}

static void run_pack12(struct bench_thread *t, size_t vectors)
{
    struct product p = product_of(t, BENCH_COLS, vectors);
    struct part part = part_of(t, t->d->packed_blocks / (vectors > 3 ? 16 : 1));
    p.y_stride = p.rows = 512;
    for (size_t i = part.first; i < part.first + part.count; i++) {
        p.w = t->d->packed + i * t->d->packed_block;
        t->d->k->pack12_product(&p);
    }
}

static void run_kda(struct bench_thread *t, size_t vectors)
{
    const size_t floats = BENCH_DIM * BENCH_DIM;
    struct part part = part_of(t, t->d->state_floats / floats);
    struct kda_step s = {.q = t->small,
                         .k = t->small + 128,
                         .v = t->small + 256,
                         .alpha = t->small + 384,
                         .beta = 0.5f,
                         .scratch = t->y,
                         .out = t->y + 128,
                         .dim = BENCH_DIM};
    for (size_t i = 0; i < part.count; i++) {
        s.state = t->d->state + (part.first + i) * floats;
        t->d->k->kda_step(&s);
    }
}

/* Scores of all heads over a context, then their sums of latents: the heads are the vectors. */
static void run_attention(struct bench_thread *t, size_t vectors)
{
    struct part heads = part_of(t, BENCH_HEADS);
    struct product p = product_of(t, BENCH_LATENT, heads.count);
    p.w = t->d->set;
    p.w_stride = BENCH_LATENT * sizeof(float);
    p.rows = p.y_stride = POSITIONS;
    t->d->k->f32_product(&p);
    struct combination c = {.w = t->d->set,
                            .w_stride = p.w_stride,
                            .rows = POSITIONS,
                            .cols = 512,
                            .x = t->y,
                            .x_stride = POSITIONS,
                            .y = t->x,
                            .y_stride = BENCH_LATENT,
                            .vectors = heads.count,
                            .first = 1};
    t->d->k->f32_combine(&c);
}

static void run_rms(struct bench_thread *t, size_t vectors)
{
    for (size_t i = 0; i < vectors; i++)
        t->d->k->rms_norm(t->y, t->small, t->small + BENCH_COLS, BENCH_COLS, 1e-5);
}

static void run_residual(struct bench_thread *t, size_t vectors)
{
    const float *source[9];
    for (size_t i = 0; i < 9; i++)
        source[i] = t->small + i * BENCH_COLS;
    for (size_t i = 0; i < vectors; i++)
        t->d->k->attention_residual(t->y, source, 9, t->small, BENCH_COLS, 1e-5);
}

static void run_situ(struct bench_thread *t, size_t vectors)
{
    static const float b[2] = {4, 25};
    for (size_t i = 0; i < vectors; i++)
        t->d->k->situ_glu(t->y, t->small, t->small + BENCH_COLS, 6144, b);
}

static void run_softmax(struct bench_thread *t, size_t vectors)
{
    for (size_t i = 0; i < vectors; i++)
        t->d->k->softmax(t->y, POSITIONS);
}

static void run_conv(struct bench_thread *t, size_t vectors)
{
    const float *u[4] = {t->small, t->small + 1, t->small + 2, t->small + 3};
    for (size_t i = 0; i < vectors; i++)
        t->d->k->short_conv(t->y, u, t->small, 12288);
}

static void run_decay(struct bench_thread *t, size_t vectors)
{
    for (size_t i = 0; i < vectors; i++)
        t->d->k->kda_decay(t->y, t->small, t->small + 16384, t->small,
                           (size_t[2]){BENCH_HEADS, BENCH_DIM}, -5.0f);
}

static void run_fixed(struct bench_thread *t, size_t vectors)
{
    for (size_t i = 0; i < vectors; i++)
        t->nothing += t->d->k->accumulate((int64_t *)t->y, t->small, 1e-3f, BENCH_WIDTH);
}

static void run_order(struct bench_thread *t, size_t vectors)
{
    for (size_t i = 0; i < vectors; i++)
        t->d->k->lane_order(t->y, t->small, BENCH_COLS);
}

static void run_route(struct bench_thread *t, size_t vectors)
{
    uint16_t expert[16];
    float weight[16];
    struct router r = {.logits = t->small,
                       .bias = t->small + 896,
                       .experts = 896,
                       .chosen = 16,
                       .scaling = 1.0f,
                       .score = t->y,
                       .expert = expert,
                       .weight = weight};
    for (size_t i = 0; i < vectors; i++)
        t->nothing += kernels_route(t->d->k, &r);
}

/* bytes and flops of a matrix product over the whole set, or a sixteenth of it when the batch
 * is large. */
static struct bench_case matrix(const char *name, void (*run)(struct bench_thread *, size_t),
                                size_t vectors, double bytes, double weights)
{
    double part = vectors > 3 ? 1.0 / 16 : 1.0;
    return (struct bench_case){.name = name,
                               .run = run,
                               .vectors = vectors,
                               .bytes = bytes * part,
                               .flops = 2.0 * weights * part * (double)vectors,
                               .limit = vectors > 3 ? BENCH_LIMIT_FMA : BENCH_LIMIT_READ};
}

/* One function on one thread's own data, so many times; bytes are of its output. */
static struct bench_case pointwise(const char *name, void (*run)(struct bench_thread *, size_t),
                                   size_t bytes)
{
    return (struct bench_case){
        .name = name, .run = run, .vectors = 200, .bytes = 200.0 * (double)bytes};
}

size_t bench_cases(const struct bench_data *d, struct bench_case *ret, size_t room)
{
    static const size_t vectors[] = {1, 2, 3, 4, 6, 8, 16, 64};
    const double set = (double)BENCH_SET_BYTES, state = 4.0 * (double)d->state_floats;
    const double packed = (double)(d->packed_block * d->packed_blocks);
    size_t n = 0;
    ret[n++] = (struct bench_case){.name = "read", .run = run_read, .bytes = set};
    ret[n++] = (struct bench_case){.name = "scale in place",
                                   .run = run_copy,
                                   .bytes = 2 * state,
                                   .limit = BENCH_LIMIT_COPY};
    ret[n++] = (struct bench_case){
        .name = "fma", .run = run_peak, .flops = BENCH_PEAK_FLOPS, .limit = BENCH_LIMIT_FMA};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        ret[n++] = matrix("bf16", run_bf16, vectors[i], set, set / 2);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        ret[n++] = matrix("pack12", run_pack12, vectors[i], packed,
                          512.0 * BENCH_COLS * (double)d->packed_blocks);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        ret[n++] = matrix("mxfp4", run_mxfp4, vectors[i], set, set * 2);
    ret[n++] = matrix("mxfp4 256", run_band, 1, set / 4, set / 2);
    ret[n++] = matrix("mxfp4 256", run_band, 4, set / 4, set / 2);
    ret[n++] = (struct bench_case){
        .name = "kda", .run = run_kda, .bytes = 2 * state, .limit = BENCH_LIMIT_COPY};
    ret[n++] =
        (struct bench_case){.name = "attention",
                            .run = run_attention,
                            .flops = 2.0 * BENCH_HEADS * POSITIONS * (512 + BENCH_LATENT),
                            .limit = BENCH_LIMIT_FMA};
    ret[n++] = pointwise("rms_norm", run_rms, 4 * BENCH_COLS);
    ret[n++] = pointwise("residual", run_residual, 4 * BENCH_COLS);
    ret[n++] = pointwise("situ_glu", run_situ, 4 * 6144);
    ret[n++] = pointwise("softmax", run_softmax, 4 * POSITIONS);
    ret[n++] = pointwise("short_conv", run_conv, 4 * 12288);
    ret[n++] = pointwise("kda_decay", run_decay, 4 * 12288);
    ret[n++] = pointwise("accumulate", run_fixed, 8 * BENCH_WIDTH);
    ret[n++] = pointwise("lane_order", run_order, 4 * BENCH_COLS);
    ret[n++] = pointwise("route", run_route, 4 * 896);
    return n <= room ? n : 0;
}
