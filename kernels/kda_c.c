/*
 * One head of KDA advanced by one token (model.md 3.3 step 7): the definition.
 *
 *     S = diag(alpha) S;  u = S^T k;  S = S + k (beta (v - u))^T;  out = S^T q
 *
 * Sums run over keys in increasing order, one fused multiply-add per key and value.
 */
#include <math.h>
#include <string.h>

#include "kernels/variants.h"

void kda_c_step(const struct kda_step *s)
{
    size_t n = s->dim;
    float *u = s->scratch;
    memset(u, 0, n * sizeof *u);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            float *at = &s->state[i * n + j];
            *at = *at * s->alpha[i];
            u[j] = fmaf(s->k[i], *at, u[j]);
        }
    for (size_t j = 0; j < n; j++)
        u[j] = s->beta * (s->v[j] - u[j]);
    if (s->out)
        memset(s->out, 0, n * sizeof *s->out);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            float *at = &s->state[i * n + j];
            *at = fmaf(s->k[i], u[j], *at);
            if (s->out)
                s->out[j] = fmaf(s->q[i], *at, s->out[j]);
        }
}
