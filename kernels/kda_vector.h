/*
 * One head of KDA advanced by one token, a vector of values at a time: kda_c.c has the
 * definition.
 *
 * A stripe of values goes through all keys with its sums in registers, twice: the first time to
 * find u, the second to renew the state and to sum what comes out. The decayed state is made
 * again in the second pass instead of being stored in the first: the same product has the same
 * bits, and the state is written once. A stripe of one head stays in the first cache between
 * the passes, and the next one, or the first of the next head, which lies behind, is fetched
 * during the second.
 */
#ifndef KERNELS_KDA_VECTOR_H
#define KERNELS_KDA_VECTOR_H

#include "kernels/kernels.h"
#include "kernels/vector.h"

#define KDA_STRIPE (VECTOR_LANES / 2) /* vectors: two of them in half the registers */

VECTOR_INLINE void kda_vector_stripe(const struct kda_step *s, size_t from, const int V,
                                     size_t some)
{
    vector u[KDA_STRIPE], out[KDA_STRIPE];
    const size_t n = s->dim;
    for (int j = 0; j < V; j++)
        u[j] = out[j] = vector_all(0.0f);
    for (size_t i = 0; i < n; i++) {
        const vector alpha = vector_all(s->alpha[i]), k = vector_all(s->k[i]);
        const float *row = s->state + i * n + from;
        for (int j = 0; j < V; j++) {
            vector old =
                some ? vector_load_some(row, some) : vector_load(row + j * VECTOR_LANES);
            u[j] = vector_fma(k, vector_mul(old, alpha), u[j]);
        }
    }
    for (int j = 0; j < V; j++) {
        const float *v = s->v + from + j * VECTOR_LANES;
        vector value = some ? vector_load_some(v, some) : vector_load(v);
        u[j] = vector_mul(vector_all(s->beta), vector_sub(value, u[j]));
    }
    const size_t behind = from + (size_t)V * VECTOR_LANES;
    const float *next = s->state + (behind < n ? behind : n * n);
    for (size_t i = 0; i < n; i++) {
        const vector alpha = vector_all(s->alpha[i]), k = vector_all(s->k[i]);
        const vector q = vector_all(s->q[i]);
        float *row = s->state + i * n + from;
        for (int j = 0; j < V; j++)
            __builtin_prefetch(next + i * n + j * VECTOR_LANES);
        for (int j = 0; j < V; j++) {
            float *at = row + j * VECTOR_LANES;
            vector old = some ? vector_load_some(at, some) : vector_load(at);
            vector renewed = vector_fma(k, u[j], vector_mul(old, alpha));
            out[j] = vector_fma(q, renewed, out[j]);
            if (some)
                vector_store_some(at, renewed, some);
            else
                vector_store(at, renewed);
        }
    }
    for (int j = 0; j < V && s->out; j++) {
        float *at = s->out + from + j * VECTOR_LANES;
        if (some)
            vector_store_some(at, out[j], some);
        else
            vector_store(at, out[j]);
    }
}

static inline void kda_vector_step(const struct kda_step *s)
{
    size_t j = 0;
    for (; j + KDA_STRIPE * VECTOR_LANES <= s->dim; j += KDA_STRIPE * VECTOR_LANES)
        kda_vector_stripe(s, j, KDA_STRIPE, 0);
    for (; j + VECTOR_LANES <= s->dim; j += VECTOR_LANES)
        kda_vector_stripe(s, j, 1, 0);
    if (j < s->dim)
        kda_vector_stripe(s, j, 1, s->dim - j);
}

#endif
