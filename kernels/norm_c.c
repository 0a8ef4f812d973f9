/*
 * Norms and attention residuals: the definition. Sums are in double, in 8 lanes (i mod 8) added
 * as a tree; a product of two fp32 values is exact in double, so a fused multiply-add and a
 * product followed by a sum are the same.
 */
#include <math.h>
#include <string.h>

#include "kernels/variants.h"

#define SUM_LANES 8
#define SOURCES   32

static double tree(double lane[SUM_LANES])
{
    for (size_t width = SUM_LANES / 2; width; width /= 2)
        for (size_t j = 0; j < width; j++)
            lane[j] += lane[j + width];
    return lane[0];
}

static double dot(const float *a, const float *b, size_t n)
{
    double lane[SUM_LANES] = {0};
    for (size_t i = 0; i < n; i++)
        lane[i % SUM_LANES] += (double)a[i] * (double)b[i];
    return tree(lane);
}

void norm_c_rms(float *y, const float *x, const float *gain, size_t n, double eps)
{
    float inverse = (float)(1.0 / sqrt(dot(x, x, n) / (double)n + eps));
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * inverse * gain[i];
}

void norm_c_l2(float *x, size_t n, double eps, float scale)
{
    float inverse = (float)(1.0 / sqrt(dot(x, x, n) + eps));
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] * inverse * scale;
}

void norm_c_attention_residual(float *out, const float *const *source, size_t sources,
                               const float *query, size_t n, double eps)
{
    float weight[SOURCES];
    for (size_t s = 0; s < sources; s++) {
        double inverse = 1.0 / sqrt(dot(source[s], source[s], n) / (double)n + eps);
        weight[s] = (float)(dot(source[s], query, n) * inverse);
    }
    activation_c_softmax(weight, sources);
    memset(out, 0, n * sizeof *out);
    for (size_t s = 0; s < sources; s++)
        for (size_t i = 0; i < n; i++)
            out[i] = fmaf(weight[s], source[s][i], out[i]);
}
