/*
 * Weighted sums of rows, a vector of columns at a time: combine_c.c has the definition.
 *
 * A tile of V columns' vectors by T batch vectors stays in registers over a run of rows, so
 * that a row's weights are loaded (and widened) once for T, and the sums go to memory once a
 * run. A run is short enough for its part of the matrix to stay in the cache from tile to tile.
 */
#ifndef KERNELS_COMBINE_VECTOR_H
#define KERNELS_COMBINE_VECTOR_H

#include <stdbool.h>

#include "kernels/kernels.h"
#include "kernels/vector.h"

#define COMBINE_WIDE 2  /* vectors of columns in a tile */
#define COMBINE_TALL 4  /* vectors of the batch in a tile */
#define COMBINE_RUN  64 /* rows */

/* Rows [0, rows) of a run; `some` columns at the end when it is not 0 (then V is 1). */
struct combine_run {
    const uint8_t *w;
    const float *x;
    float *y;
    size_t rows;
    bool first, is_bf16;
};

VECTOR_INLINE vector combine_vector_weights(const struct combine_run *r, const uint8_t *w,
                                            size_t some)
{
    if (!r->is_bf16)
        return some ? vector_load_some((const float *)w, some) : vector_load((const float *)w);
    if (!some)
        return vector_load_bf16(w);
    uint16_t half[VECTOR_LANES] = {0};
    __builtin_memcpy(half, w, some * sizeof *half);
    return vector_load_bf16((const uint8_t *)half);
}

VECTOR_INLINE void combine_vector_tile(const struct combination *c, struct combine_run r,
                                       const int T, const int V, size_t some)
{
    const size_t wide = VECTOR_LANES * (r.is_bf16 ? 2 : 4);
    vector sum[COMBINE_TALL][COMBINE_WIDE];
    for (int t = 0; t < T; t++)
        for (int v = 0; v < V; v++) {
            const float *y = r.y + (size_t)t * c->y_stride + v * VECTOR_LANES;
            sum[t][v] = r.first ? vector_all(0.0f)
                        : some  ? vector_load_some(y, some)
                                : vector_load(y);
        }
    for (size_t i = 0; i < r.rows; i++) {
        vector w[COMBINE_WIDE];
        for (int v = 0; v < V; v++)
            w[v] = combine_vector_weights(&r, r.w + i * c->w_stride + (size_t)v * wide, some);
        for (int t = 0; t < T; t++) {
            const vector x = vector_all(r.x[(size_t)t * c->x_stride + i]);
            for (int v = 0; v < V; v++)
                sum[t][v] = vector_fma(x, w[v], sum[t][v]);
        }
    }
    for (int t = 0; t < T; t++)
        for (int v = 0; v < V; v++) {
            float *y = r.y + (size_t)t * c->y_stride + v * VECTOR_LANES;
            if (some)
                vector_store_some(y, sum[t][v], some);
            else
                vector_store(y, sum[t][v]);
        }
}

/* All columns for T vectors of the batch. */
VECTOR_INLINE void combine_vector_columns(const struct combination *c, struct combine_run r,
                                          const int T)
{
    const size_t size = r.is_bf16 ? 2 : 4;
    size_t i = 0;
    const uint8_t *w = r.w;
    float *y = r.y;
    for (; i + COMBINE_WIDE * VECTOR_LANES <= c->cols; i += COMBINE_WIDE * VECTOR_LANES) {
        r.w = w + i * size;
        r.y = y + i;
        combine_vector_tile(c, r, T, COMBINE_WIDE, 0);
    }
    for (; i + VECTOR_LANES <= c->cols; i += VECTOR_LANES) {
        r.w = w + i * size;
        r.y = y + i;
        combine_vector_tile(c, r, T, 1, 0);
    }
    if (i < c->cols) {
        r.w = w + i * size;
        r.y = y + i;
        combine_vector_tile(c, r, T, 1, c->cols - i);
    }
}

VECTOR_INLINE void combine_vector(const struct combination *c, bool is_bf16)
{
    for (size_t i = 0; i < c->rows || (i == 0 && c->first); i += COMBINE_RUN) {
        struct combine_run r = {.w = (const uint8_t *)c->w + i * c->w_stride,
                                .x = c->x + i,
                                .y = c->y,
                                .first = c->first && i == 0,
                                .is_bf16 = is_bf16};
        r.rows = c->rows - i < COMBINE_RUN ? c->rows - i : COMBINE_RUN;
        size_t t = 0;
        for (; t + COMBINE_TALL <= c->vectors; t += COMBINE_TALL) {
            combine_vector_columns(c, r, COMBINE_TALL);
            r.x += COMBINE_TALL * c->x_stride;
            r.y += COMBINE_TALL * c->y_stride;
        }
        for (; t < c->vectors; t++) {
            combine_vector_columns(c, r, 1);
            r.x += c->x_stride;
            r.y += c->y_stride;
        }
    }
}

static inline void combine_vector_bf16(const struct combination *c)
{
    combine_vector(c, true);
}

static inline void combine_vector_f32(const struct combination *c)
{
    combine_vector(c, false);
}

#endif
