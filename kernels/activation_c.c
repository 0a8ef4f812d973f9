/*
 * Pointwise functions: the definition. exp and tanh are SLEEF's deterministic FMA functions,
 * which give the same bits in their scalar, AVX2 and AVX-512 forms; libm's do not, across
 * versions and CPUs.
 */
#include <math.h>
#include <sleef.h>

#include "kernels/variants.h"

#define SOFTMAX_LANES 16

static float exp_of(float x)
{
    return Sleef_finz_expf1_u10purecfma(x);
}

static float tanh_of(float x)
{
    return Sleef_finz_tanhf1_u10purecfma(x);
}

static float sigmoid_of(float x)
{
    return 1.0f / (1.0f + exp_of(-x));
}

float kernels_exp(float x)
{
    return exp_of(x);
}

void activation_c_softmax(float *score, size_t n)
{
    float lane[SOFTMAX_LANES] = {0}, most = score[0];
    for (size_t i = 1; i < n; i++)
        most = score[i] > most ? score[i] : most;
    for (size_t i = 0; i < n; i++) {
        score[i] = exp_of(score[i] - most);
        lane[i % SOFTMAX_LANES] += score[i];
    }
    for (size_t width = SOFTMAX_LANES / 2; width; width /= 2)
        for (size_t j = 0; j < width; j++)
            lane[j] += lane[j + width];
    for (size_t i = 0; i < n; i++)
        score[i] = score[i] / lane[0];
}

void activation_c_sigmoid(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = sigmoid_of(x[i]);
}

void activation_c_situ_glu(float *y, const float *gate, const float *up, size_t n,
                           const float b[2])
{
    for (size_t i = 0; i < n; i++) {
        float g = b[0] * tanh_of(gate[i] / b[0]) * sigmoid_of(gate[i]);
        float u = b[1] * tanh_of(up[i] / b[1]);
        y[i] = g * u;
    }
}

void activation_c_gate(float *y, const float *x, const float *gate, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * sigmoid_of(gate[i]);
}

void activation_c_short_conv(float *y, const float *const u[4], const float *w, size_t channels)
{
    for (size_t c = 0; c < channels; c++) {
        float sum = 0;
        for (size_t j = 0; j < 4; j++)
            sum = fmaf(w[4 * c + j], u[j][c], sum);
        y[c] = sum * sigmoid_of(sum);
    }
}

void activation_c_kda_decay(float *alpha, const float *z, const float *bias, const float *rate,
                            const size_t heads_dim[2], float floor)
{
    for (size_t h = 0; h < heads_dim[0]; h++)
        for (size_t d = 0; d < heads_dim[1]; d++) {
            size_t i = h * heads_dim[1] + d;
            alpha[i] = exp_of(floor * sigmoid_of(rate[h] * (z[i] + bias[i])));
        }
}
