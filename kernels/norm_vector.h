/*
 * Norms and attention residuals, a vector at a time: norm_c.c has the definition.
 *
 * The eight lanes of a sum in double are two registers with AVX2 and one with AVX-512. Products
 * of two fp32 values are exact in double, so the fused operation gives what product and sum do.
 */
#ifndef KERNELS_NORM_VECTOR_H
#define KERNELS_NORM_VECTOR_H

#include <math.h>

#include "kernels/activation_vector.h"

#define NORM_LANES   8
#define NORM_PARTS   (NORM_LANES * 2 / VECTOR_LANES)
#define NORM_SOURCES 32

VECTOR_INLINE double norm_vector_tree(const vector_half *sum, const float *a, const float *b,
                                      size_t rest)
{
    double lane[NORM_LANES];
    for (size_t j = 0; j < NORM_PARTS; j++)
        vector_half_store(lane + j * (VECTOR_LANES / 2), sum[j]);
    for (size_t j = 0; j < rest; j++)
        lane[j] += (double)a[j] * (double)b[j];
    for (size_t width = NORM_LANES / 2; width; width /= 2)
        for (size_t j = 0; j < width; j++)
            lane[j] += lane[j + width];
    return lane[0];
}

/* The sums of a b and of a a in one reading of a. */
VECTOR_INLINE void norm_vector_dots(double ret[2], const float *a, const float *b, size_t n)
{
    vector_half ab[NORM_PARTS], aa[NORM_PARTS];
    for (size_t j = 0; j < NORM_PARTS; j++)
        ab[j] = aa[j] = vector_half_all(0.0);
    size_t i = 0;
    for (; i + NORM_LANES <= n; i += NORM_LANES)
        for (size_t j = 0; j < NORM_PARTS; j++) {
            vector_half x = vector_half_load(a + i + j * (VECTOR_LANES / 2));
            ab[j] = vector_half_fma(x, vector_half_load(b + i + j * (VECTOR_LANES / 2)), ab[j]);
            aa[j] = vector_half_fma(x, x, aa[j]);
        }
    ret[0] = norm_vector_tree(ab, a + i, b + i, n - i);
    ret[1] = norm_vector_tree(aa, a + i, a + i, n - i);
}

VECTOR_INLINE double norm_vector_squares(const float *a, size_t n)
{
    vector_half aa[NORM_PARTS];
    for (size_t j = 0; j < NORM_PARTS; j++)
        aa[j] = vector_half_all(0.0);
    size_t i = 0;
    for (; i + NORM_LANES <= n; i += NORM_LANES)
        for (size_t j = 0; j < NORM_PARTS; j++) {
            vector_half x = vector_half_load(a + i + j * (VECTOR_LANES / 2));
            aa[j] = vector_half_fma(x, x, aa[j]);
        }
    return norm_vector_tree(aa, a + i, a + i, n - i);
}

static inline void norm_vector_rms(float *y, const float *x, const float *gain, size_t n,
                                   double eps)
{
    float inverse = (float)(1.0 / sqrt(norm_vector_squares(x, n) / (double)n + eps));
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * inverse * gain[i];
}

static inline void norm_vector_l2(float *x, size_t n, double eps, float scale)
{
    float inverse = (float)(1.0 / sqrt(norm_vector_squares(x, n) + eps));
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] * inverse * scale;
}

VECTOR_INLINE void norm_vector_mix(float *out, const float *const *source, const float *weight,
                                   size_t sources, size_t n)
{
    size_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES) {
        vector sum = vector_all(0.0f);
        for (size_t s = 0; s < sources; s++)
            sum = vector_fma(vector_all(weight[s]), vector_load(source[s] + i), sum);
        vector_store(out + i, sum);
    }
    if (i < n) {
        vector sum = vector_all(0.0f);
        for (size_t s = 0; s < sources; s++)
            sum =
                vector_fma(vector_all(weight[s]), vector_load_some(source[s] + i, n - i), sum);
        vector_store_some(out + i, sum, n - i);
    }
}

static inline void norm_vector_attention_residual(float *out, const float *const *source,
                                                  size_t sources, const float *query, size_t n,
                                                  double eps)
{
    float weight[NORM_SOURCES] = {0};
    for (size_t s = 0; s < sources; s++) {
        double sums[2];
        norm_vector_dots(sums, source[s], query, n);
        weight[s] = (float)(sums[0] * (1.0 / sqrt(sums[1] / (double)n + eps)));
    }
    activation_vector_softmax(weight, sources);
    norm_vector_mix(out, source, weight, sources, n);
}

#endif
