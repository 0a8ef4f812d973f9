/* Everything but products: sums of rows, pointwise functions, norms, KDA, fixed point. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/kernels/check.h"

static const size_t lengths[] = {1,  2,  3,  7,  8,  9,  15, 16,  17,  24,
                                 31, 32, 33, 40, 63, 64, 65, 100, 128, 1000};
#define LENGTHS (sizeof lengths / sizeof *lengths)

/* The same numbers for the definition and for the variant. */
struct pair {
    float *want, *got;
    size_t n;
};

static struct pair pair_take(struct check *c, size_t n, enum check_fill fill)
{
    struct pair p = {check_floats(c, n, fill), check_take(4 * n), n};
    memcpy(p.got, p.want, 4 * n);
    return p;
}

static void pair_give(struct check *c, const char *what, struct pair *p)
{
    check_same(c, what, p->want, p->got, p->n);
    check_give(p->want, 4 * p->n);
    check_give(p->got, 4 * p->n);
}

static void combine(const struct kernels *k, bool bf16, const struct combination *c)
{
    (bf16 ? k->bf16_combine : k->f32_combine)(c);
}

static void check_combination(struct check *c, bool bf16, const size_t shape[3],
                              enum check_fill fill)
{
    size_t rows = shape[0], cols = shape[1], vectors = shape[2], size = bf16 ? 2 : 4;
    size_t stride = size * (cols + check_below(c, 3)),
           bytes = stride * (rows - 1) + size * cols;
    struct combination s = {.w_stride = stride, .rows = rows, .cols = cols, .vectors = vectors};
    uint8_t *w = check_take(bytes);
    for (size_t i = 0; i + size <= bytes; i += size) {
        float value = check_value(c, fill);
        memcpy(w + i, (uint8_t *)&value + 4 - size, size);
    }
    s.w = w;
    s.x_stride = rows + check_below(c, 3);
    s.y_stride = cols + check_below(c, 3);
    size_t x_floats = s.x_stride * (vectors - 1) + rows;
    float *x = check_floats(c, x_floats, fill);
    struct pair y = pair_take(c, s.y_stride * (vectors - 1) + cols, fill);
    s.first = (int)check_below(c, 2);
    s.x = x;
    s.y = y.want;
    combine(c->want, bf16, &s);
    s.y = y.got;
    s.rows = check_below(c, rows + 1);
    combine(c->got, bf16, &s);
    s.w = w + s.rows * stride;
    s.x += s.rows;
    s.first = s.first && !s.rows;
    s.rows = rows - s.rows;
    if (s.rows)
        combine(c->got, bf16, &s);
    pair_give(c, bf16 ? "bf16 combination in two runs" : "f32 combination in two runs", &y);
    check_give(x, 4 * x_floats);
    check_give(w, bytes);
}

void check_combinations(struct check *c)
{
    static const size_t vectors[] = {1, 2, 3, 4, 5, 7, 8, 9, 33};
    for (size_t i = 0; i < LENGTHS; i++)
        for (size_t t = 0; t < sizeof vectors / sizeof *vectors; t++)
            for (size_t fill = 0; fill < CHECK_FILLS; fill++)
                for (size_t bf16 = 0; bf16 < 2 && check_turn(c); bf16++)
                    check_combination(
                        c, bf16, (size_t[3]){1 + check_below(c, 40), lengths[i], vectors[t]},
                        (enum check_fill)fill);
}

/* Arguments of exp and tanh: every magnitude, and the borders of the functions. */
static void fill_arguments(struct check *c, struct pair *p)
{
    static const float special[] = {0.0f,   -0.0f,  88.7f,   88.8f, -103.9f, -104.1f, 104.0f,
                                    -87.4f, 200.0f, -200.0f, 1e30f, -1e30f,  3e38f,   -3e38f,
                                    8.66f,  -8.66f, 9.02f,   1e-8f, 1e-40f,  -1e-40f};
    for (size_t i = 0; i < p->n; i++) {
        size_t r = check_below(c, 4);
        p->want[i] = r == 0 ? special[check_below(c, sizeof special / sizeof *special)]
                            : check_value(c, r == 1   ? CHECK_FILL_EXTREME
                                             : r == 2 ? CHECK_FILL_DENORMAL
                                                      : CHECK_FILL_NORMAL) *
                                  (r == 3 ? 20.0f : 1.0f);
    }
    memcpy(p->got, p->want, 4 * p->n);
}

static void check_gates(struct check *c, size_t n)
{
    static const float beta[2] = {4.0f, 25.0f};
    struct pair x = pair_take(c, n, CHECK_FILL_NORMAL), g = pair_take(c, n, CHECK_FILL_NORMAL);
    struct pair y = pair_take(c, n, CHECK_FILL_ZERO);
    fill_arguments(c, &x);
    fill_arguments(c, &g);
    c->want->sigmoid(y.want, x.want, n);
    c->got->sigmoid(y.got, x.got, n);
    check_same(c, "sigmoid", y.want, y.got, n);
    c->want->situ_glu(y.want, g.want, x.want, n, beta);
    c->got->situ_glu(y.got, g.got, x.got, n, beta);
    check_same(c, "situ_glu", y.want, y.got, n);
    c->want->gate(y.want, x.want, g.want, n);
    c->got->gate(y.got, x.got, g.got, n);
    check_same(c, "gate", y.want, y.got, n);
    c->got->situ_glu(g.got, g.got, x.got, n, beta);
    c->want->situ_glu(y.want, g.want, x.want, n, beta);
    memcpy(g.want, y.want, 4 * n);
    c->want->sigmoid(x.want, x.want, n);
    c->got->sigmoid(x.got, x.got, n);
    c->want->gate(y.want, x.want, x.want, n);
    c->got->gate(y.got, x.got, x.got, n);
    pair_give(c, "sigmoid in place", &x);
    pair_give(c, "situ_glu in the place of its gate", &g);
    pair_give(c, "gate by itself", &y);
}

static void check_softmax(struct check *c, size_t n, enum check_fill fill)
{
    struct pair s = pair_take(c, n, fill);
    c->want->softmax(s.want, n);
    c->got->softmax(s.got, n);
    pair_give(c, "softmax", &s);
}

static void check_conv(struct check *c, size_t n, enum check_fill fill)
{
    struct pair y = pair_take(c, n, fill);
    float *u[4], *w = check_floats(c, 4 * n, fill);
    for (size_t j = 0; j < 4; j++)
        u[j] = check_floats(c, n, fill);
    c->want->short_conv(y.want, (const float *const *)u, w, n);
    c->got->short_conv(y.got, (const float *const *)u, w, n);
    for (size_t j = 0; j < 4; j++)
        check_give(u[j], 4 * n);
    check_give(w, 16 * n);
    pair_give(c, "short_conv", &y);
}

static void check_decay(struct check *c, size_t dim, enum check_fill fill)
{
    size_t heads = 1 + check_below(c, 4), n = heads * dim;
    struct pair z = pair_take(c, n, fill), y = pair_take(c, n, fill);
    float *bias = check_floats(c, n, fill), *rate = check_floats(c, heads, fill);
    fill_arguments(c, &z);
    c->want->kda_decay(y.want, z.want, bias, rate, (size_t[2]){heads, dim}, -5.0f);
    c->got->kda_decay(y.got, z.got, bias, rate, (size_t[2]){heads, dim}, -5.0f);
    check_give(bias, 4 * n);
    check_give(rate, 4 * heads);
    pair_give(c, "kda_decay leaves its input alone", &z);
    pair_give(c, "kda_decay", &y);
}

void check_pointwise(struct check *c)
{
    for (size_t i = 0; i < LENGTHS; i++)
        for (size_t fill = 0; fill < CHECK_FILLS; fill++) {
            check_gates(c, lengths[i]);
            check_softmax(c, lengths[i], (enum check_fill)fill);
            check_conv(c, lengths[i], (enum check_fill)fill);
            check_decay(c, lengths[i], (enum check_fill)fill);
        }
}

static void check_norm(struct check *c, size_t n, enum check_fill fill)
{
    struct pair y = pair_take(c, n, fill);
    float *x = check_floats(c, n, fill), *gain = check_floats(c, n, fill);
    c->want->rms_norm(y.want, x, gain, n, 1e-5);
    c->got->rms_norm(y.got, x, gain, n, 1e-5);
    check_same(c, "rms_norm", y.want, y.got, n);
    c->want->rms_norm(y.want, y.want, gain, n, 1e-5);
    c->got->rms_norm(y.got, y.got, gain, n, 1e-5);
    check_same(c, "rms_norm in place", y.want, y.got, n);
    c->want->l2_norm(y.want, n, 1e-6, 0.0883883461f);
    c->got->l2_norm(y.got, n, 1e-6, 0.0883883461f);
    pair_give(c, "l2_norm", &y);
    check_give(x, 4 * n);
    check_give(gain, 4 * n);
}

static void check_residual(struct check *c, size_t n, enum check_fill fill)
{
    size_t sources = 1 + check_below(c, 32);
    struct pair y = pair_take(c, n, fill);
    float *source[32], *query = check_floats(c, n, fill);
    for (size_t i = 0; i < sources; i++)
        source[i] = check_floats(c, n, fill);
    c->want->attention_residual(y.want, (const float *const *)source, sources, query, n, 1e-5);
    c->got->attention_residual(y.got, (const float *const *)source, sources, query, n, 1e-5);
    for (size_t i = 0; i < sources; i++)
        check_give(source[i], 4 * n);
    check_give(query, 4 * n);
    pair_give(c, "attention_residual", &y);
}

void check_norms(struct check *c)
{
    for (size_t i = 0; i < LENGTHS; i++)
        for (size_t fill = 0; fill < CHECK_FILLS; fill++) {
            check_norm(c, lengths[i], (enum check_fill)fill);
            check_residual(c, lengths[i], (enum check_fill)fill);
        }
}

static void check_step(struct check *c, size_t dim, enum check_fill fill)
{
    struct pair state = pair_take(c, dim * dim, fill), out = pair_take(c, dim, fill);
    float *in[4];
    for (size_t i = 0; i < 4; i++)
        in[i] = check_floats(c, dim, fill);
    float *scratch = check_floats(c, dim, fill);
    struct kda_step s = {.q = in[0], .k = in[1], .v = in[2], .alpha = in[3], .dim = dim};
    s.beta = check_value(c, fill);
    s.scratch = scratch;
    for (int round = 0; round < 3; round++) {
        s.state = state.want;
        s.out = round == 1 ? NULL : out.want;
        c->want->kda_step(&s);
        s.state = state.got;
        s.out = round == 1 ? NULL : out.got;
        c->got->kda_step(&s);
    }
    for (size_t i = 0; i < 4; i++)
        check_give(in[i], 4 * dim);
    check_give(scratch, 4 * dim);
    pair_give(c, "kda_step, state", &state);
    pair_give(c, "kda_step, out", &out);
}

void check_recurrence(struct check *c)
{
    static const size_t dims[] = {1, 3, 8, 16, 17, 31, 32, 48, 64, 96, 100, 128, 160};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        for (size_t fill = 0; fill < CHECK_FILLS; fill++)
            check_step(c, dims[i], (enum check_fill)fill);
}

static void check_accumulate(struct check *c, size_t n, float weight, float largest)
{
    int64_t want[1000], got[1000];
    float *d = check_floats(c, n, CHECK_FILL_NORMAL);
    for (size_t i = 0; i < n; i++) {
        d[i] *= largest / 4.0f;
        want[i] = got[i] = (int64_t)check_random(c) >> 8;
    }
    int a = c->want->accumulate(want, d, weight, n), b = c->got->accumulate(got, d, weight, n);
    check_true(c, "accumulate says yes or no alike", a == b);
    check_true(c, "accumulate", a || !memcmp(want, got, n * sizeof *want));
    struct pair y = pair_take(c, n, CHECK_FILL_NORMAL);
    c->want->settle(y.want, want, n);
    c->got->settle(y.got, want, n);
    pair_give(c, "settle", &y);
    check_give(d, 4 * n);
}

static void check_refusals(struct check *c)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, 0x1p14f, -0x1p14f, 0x1p100f};
    int64_t sum[40] = {0};
    for (size_t n = 1; n <= 40; n++)
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            float *d = check_floats(c, n, CHECK_FILL_NORMAL);
            d[check_below(c, n)] = bad[i];
            check_true(c, "accumulate refuses what it must",
                       c->got->accumulate(sum, d, 1.0f, n) == (i < 3 ? -EDOM : -ERANGE));
            check_give(d, 4 * n);
        }
}

void check_fixed(struct check *c)
{
    static const float largest[] = {1e-20f, 1e-6f, 1.0f, 100.0f, 2047.9f, 16383.9f};
    check_refusals(c);
    for (size_t i = 0; i < LENGTHS; i++)
        for (size_t j = 0; j < sizeof largest / sizeof *largest; j++) {
            check_accumulate(c, lengths[i], 1.0f, largest[j]);
            check_accumulate(c, lengths[i], -0.3f, largest[j]);
        }
}
