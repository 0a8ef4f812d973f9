/*
 * The model's arithmetic: pure functions with one summation order (docs/numerics.md).
 *
 * A kernel takes a run of rows, gives numbers, and does nothing else: no memory, thread, lock,
 * file, log or global. Cutting a matrix into runs of rows, or a batch into vectors, never
 * changes a bit of what any (row, vector) pair gives. The plain C files are the definition;
 * the AVX2 and AVX-512 files agree with them to the bit, and kernelcheck proves it.
 *
 * Vectors that are multiplied with matrices are brought into *lane order* once (lane_order()
 * below): of every 32 elements first the 16 even ones, then the 16 odd ones, the last group
 * filled with zeros. That is how 64 bytes of bf16 and 16 bytes of MXFP4 fall into 16 lanes.
 *
 * Where to get them: kernels_best() once at start; the table is constant.
 */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#define KERNELS_LANES 16
#define KERNELS_GROUP 32 /* elements of one lane-order group, and of one MXFP4 scale */

/* Floats a vector of n elements takes in lane order. */
static inline size_t kernels_padded(size_t n)
{
    return (n + KERNELS_GROUP - 1) / KERNELS_GROUP * KERNELS_GROUP;
}

/* y[t][r] = sum over c of w[r][c] x[t][c], for r < rows and t < vectors. */
struct product {
    const void *w;        /* first row: bf16, MXFP4 nibbles (low = even column) or f32 */
    size_t w_stride;      /* bytes from row to row */
    size_t first;         /* 12-bit only: w is a packed block, its rows begin at this one */
    const uint8_t *scale; /* MXFP4 only: one E8M0 byte per 32 columns */
    size_t scale_stride;  /* bytes from row to row */
    size_t rows, cols;    /* cols: a multiple of 32 for MXFP4 */
    const float *x;       /* [vectors][>= kernels_padded(cols)], lane order */
    size_t x_stride;      /* floats */
    float *y;             /* [vectors][>= rows], natural order */
    size_t y_stride;      /* floats */
    size_t vectors;       /* T >= 1 */
};

/* y[t][c] = chain over r of fma(x[t][r], w[r][c], y[t][c]): rows in increasing order, starting
 * at +0 when `first`, else at what y holds (so that a run of rows may be cut anywhere). */
struct combination {
    const void *w;   /* bf16 or f32 rows */
    size_t w_stride; /* bytes */
    size_t rows, cols;
    const float *x;  /* [vectors][>= rows] */
    size_t x_stride; /* floats */
    float *y;        /* [vectors][>= cols] */
    size_t y_stride; /* floats */
    size_t vectors;  /* >= 1: rows of a batch, or heads that share w */
    int first;
};

/* One head of one KDA layer advanced by one token (model.md 3.3 step 7). */
struct kda_step {
    float *state;       /* [dim keys][dim values], advanced in place */
    const float *q, *k; /* [dim], normalised, q scaled */
    const float *v;     /* [dim] */
    const float *alpha; /* [dim] decay of each key row */
    float beta;
    float *out;     /* [dim] = S^T q with the updated S; NULL: only the state is wanted */
    float *scratch; /* [dim] */
    size_t dim;
};

struct kernels {
    const char *name; /* "c", "avx2", "avx512" */

    /* out[0..kernels_padded(n)) = x in lane order; out and x do not overlap. */
    void (*lane_order)(float *out, const float *x, size_t n);

    void (*bf16_product)(const struct product *p);
    /* -EDOM, with y undefined, when a scale byte of these rows is 255 (NaN), else 0. */
    int (*mxfp4_product)(const struct product *p);
    /* w holds f32 rows already in lane order, of which the cols elements take part. */
    void (*f32_product)(const struct product *p);
    /* w is a block of pack12.h that pack12_check() found sound; gives what bf16_product gives
     * on the block's source. cols as packed; first + rows within the block. */
    void (*pack12_product)(const struct product *p);

    void (*bf16_combine)(const struct combination *c);
    void (*f32_combine)(const struct combination *c);

    /* y = x * (1/sqrt(mean x^2 + eps)) * gain. y may be x. */
    void (*rms_norm)(float *y, const float *x, const float *gain, size_t n, double eps);
    /* x = x / sqrt(sum x^2 + eps) * scale, the scale in a second fp32 rounding. In place. */
    void (*l2_norm)(float *x, size_t n, double eps, float scale);

    /* The attention residual of one row (model.md 3.2): softmax over the sources of
     * (source . query) / rms(source), then the mix of the raw sources. query = norm gain *
     * projection, folded in fp32. sources <= 32; out may not be one of them. */
    void (*attention_residual)(float *out, const float *const *source, size_t sources,
                               const float *query, size_t n, double eps);

    /* In place over n scores: exp(s - max) / sum. */
    void (*softmax)(float *score, size_t n);

    void (*sigmoid)(float *y, const float *x, size_t n); /* y may be x */
    /* y = [b1 tanh(gate/b1) sigmoid(gate)] [b2 tanh(up/b2)]; y may be gate or up. */
    void (*situ_glu)(float *y, const float *gate, const float *up, size_t n, const float b[2]);
    /* y = x * sigmoid(gate); y may be x. */
    void (*gate)(float *y, const float *x, const float *gate, size_t n);

    /* y[c] = silu(sum over j of w[c][j] u[j][c]), taps in increasing j with fma from +0;
     * u[3] is the current token, u[0] the oldest. */
    void (*short_conv)(float *y, const float *const u[4], const float *w, size_t channels);

    /* alpha[h][d] = exp(floor * sigmoid(rate[h] * (z[h][d] + bias[h][d]))), rate = exp(A_log).
     */
    void (*kda_decay)(float *alpha, const float *z, const float *bias, const float *rate,
                      const size_t heads_dim[2], float floor);
    void (*kda_step)(const struct kda_step *s);

    /* sum[i] += round_to_nearest_even((double)weight * (double)d[i] * 2^40). -ERANGE when some
     * |weight * d| >= 2^14, -EDOM when one is NaN or infinite; sum is then partly advanced. */
    int (*accumulate)(int64_t *sum, const float *d, float weight, size_t n);
    /* out[i] = (float)((double)sum[i] * 2^-40). */
    void (*settle)(float *out, const int64_t *sum, size_t n);
};

/* exp of one value by the same function the kernels use (SLEEF's deterministic one). */
float kernels_exp(float x);

/* The choice of experts for one row (model.md 3.5): score = sigmoid(logits); the k largest of
 * score + bias, ties by the lower index; weight = score / (sum + 1e-20) * scaling, the sum in
 * increasing expert index. expert[] comes out increasing.
 * -EDOM when a score is not a number. */
struct router {
    const float *logits; /* [experts] */
    const float *bias;   /* [experts] */
    size_t experts, chosen;
    float scaling;
    float *score;     /* [experts] scratch */
    uint16_t *expert; /* [chosen] out */
    float *weight;    /* [chosen] out */
};
int kernels_route(const struct kernels *k, const struct router *r);

/* The table for this machine, or NULL when it lacks the floor (x86-64: AVX2 and FMA; aarch64
 * has none). `at_most` ("c", "avx2", "avx512" or NULL) only lowers the choice; an unknown name
 * or one the machine lacks gives NULL. `ret_reason` then holds a sentence. */
const struct kernels *kernels_best(const char *at_most, const char **ret_reason);

#endif
