/* Pointwise functions, a vector at a time: activation_c.c has the definition. */
#ifndef KERNELS_ACTIVATION_VECTOR_H
#define KERNELS_ACTIVATION_VECTOR_H

#include "kernels/kernels.h"
#include "kernels/vector.h"

#define ACTIVATION_PARTS (KERNELS_LANES / VECTOR_LANES)

VECTOR_INLINE vector activation_vector_sigmoid_of(vector x)
{
    const vector one = vector_all(1.0f);
    return vector_div(one, vector_add(one, vector_exp(vector_negative(x))));
}

static inline void activation_vector_sigmoid(float *y, const float *x, size_t n)
{
    size_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES)
        vector_store(y + i, activation_vector_sigmoid_of(vector_load(x + i)));
    if (i < n)
        vector_store_some(y + i, activation_vector_sigmoid_of(vector_load_some(x + i, n - i)),
                          n - i);
}

VECTOR_INLINE vector activation_vector_situ_of(vector gate, vector up, const float b[2])
{
    const vector b0 = vector_all(b[0]), b1 = vector_all(b[1]);
    vector g = vector_mul(b0, vector_tanh(vector_div(gate, b0)));
    g = vector_mul(g, activation_vector_sigmoid_of(gate));
    return vector_mul(g, vector_mul(b1, vector_tanh(vector_div(up, b1))));
}

static inline void activation_vector_situ_glu(float *y, const float *gate, const float *up,
                                              size_t n, const float b[2])
{
    size_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES)
        vector_store(y + i,
                     activation_vector_situ_of(vector_load(gate + i), vector_load(up + i), b));
    if (i < n) {
        vector g = vector_load_some(gate + i, n - i), u = vector_load_some(up + i, n - i);
        vector_store_some(y + i, activation_vector_situ_of(g, u, b), n - i);
    }
}

static inline void activation_vector_gate(float *y, const float *x, const float *gate, size_t n)
{
    size_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES)
        vector_store(y + i, vector_mul(vector_load(x + i),
                                       activation_vector_sigmoid_of(vector_load(gate + i))));
    if (i < n) {
        vector s = activation_vector_sigmoid_of(vector_load_some(gate + i, n - i));
        vector_store_some(y + i, vector_mul(vector_load_some(x + i, n - i), s), n - i);
    }
}

VECTOR_INLINE float activation_vector_most(const float *x, size_t n)
{
    float lane[VECTOR_LANES], most = x[0];
    vector v = vector_all(x[0]);
    size_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES)
        v = vector_max(v, vector_load(x + i));
    vector_store(lane, v);
    for (size_t j = 0; j < VECTOR_LANES; j++)
        most = lane[j] > most ? lane[j] : most;
    for (; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

static inline void activation_vector_softmax(float *score, size_t n)
{
    const vector most = vector_all(activation_vector_most(score, n));
    float lane[KERNELS_LANES];
    vector sum[ACTIVATION_PARTS];
    for (size_t j = 0; j < ACTIVATION_PARTS; j++)
        sum[j] = vector_all(0.0f);
    size_t i = 0;
    for (; i + KERNELS_LANES <= n; i += KERNELS_LANES)
        for (size_t j = 0; j < ACTIVATION_PARTS; j++) {
            float *at = score + i + j * VECTOR_LANES;
            vector e = vector_exp(vector_sub(vector_load(at), most));
            vector_store(at, e);
            sum[j] = vector_add(sum[j], e);
        }
    for (size_t j = 0; j < ACTIVATION_PARTS; j++)
        vector_store(lane + j * VECTOR_LANES, sum[j]);
    for (; i < n; i += VECTOR_LANES) {
        size_t some = n - i < VECTOR_LANES ? n - i : VECTOR_LANES;
        float e[VECTOR_LANES];
        vector s =
            some < VECTOR_LANES ? vector_load_some(score + i, some) : vector_load(score + i);
        vector_store(e, vector_exp(vector_sub(s, most)));
        for (size_t j = 0; j < some; j++) {
            score[i + j] = e[j];
            lane[(i + j) % KERNELS_LANES] += e[j];
        }
    }
    for (size_t width = KERNELS_LANES / 2; width; width /= 2)
        for (size_t j = 0; j < width; j++)
            lane[j] += lane[j + width];
    for (i = 0; i < n; i++)
        score[i] = score[i] / lane[0];
}

/* The four taps of VECTOR_LANES channels lie channel by channel: taps[j] gathers tap j. */
static inline void activation_vector_short_conv(float *y, const float *const u[4],
                                                const float *w, size_t channels)
{
    for (size_t c = 0; c < channels; c += VECTOR_LANES) {
        size_t some = channels - c < VECTOR_LANES ? channels - c : VECTOR_LANES;
        float taps[4][VECTOR_LANES] = {{0}};
        for (size_t i = 0; i < some; i++)
            for (size_t j = 0; j < 4; j++)
                taps[j][i] = w[4 * (c + i) + j];
        vector sum = vector_all(0.0f);
        for (size_t j = 0; j < 4; j++) {
            vector x =
                some < VECTOR_LANES ? vector_load_some(u[j] + c, some) : vector_load(u[j] + c);
            sum = vector_fma(vector_load(taps[j]), x, sum);
        }
        sum = vector_mul(sum, activation_vector_sigmoid_of(sum));
        if (some < VECTOR_LANES)
            vector_store_some(y + c, sum, some);
        else
            vector_store(y + c, sum);
    }
}

VECTOR_INLINE vector activation_vector_decay_of(vector z, vector bias, float rate, float floor)
{
    vector s = vector_mul(vector_all(rate), vector_add(z, bias));
    return vector_exp(vector_mul(vector_all(floor), activation_vector_sigmoid_of(s)));
}

static inline void activation_vector_kda_decay(float *alpha, const float *z, const float *bias,
                                               const float *rate, const size_t heads_dim[2],
                                               float floor)
{
    for (size_t h = 0; h < heads_dim[0]; h++) {
        size_t i = h * heads_dim[1], end = i + heads_dim[1];
        for (; i + VECTOR_LANES <= end; i += VECTOR_LANES)
            vector_store(alpha + i,
                         activation_vector_decay_of(vector_load(z + i), vector_load(bias + i),
                                                    rate[h], floor));
        if (i < end)
            vector_store_some(alpha + i,
                              activation_vector_decay_of(vector_load_some(z + i, end - i),
                                                         vector_load_some(bias + i, end - i),
                                                         rate[h], floor),
                              end - i);
    }
}

#endif
