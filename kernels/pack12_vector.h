/*
 * Rows of a 12-bit block times few vectors. A strip of four rows is one linear stream; a unit
 * in which a row has exceptions is rebuilt as bf16 for that row and goes through the same sums.
 */
#ifndef KERNELS_PACK12_VECTOR_H
#define KERNELS_PACK12_VECTOR_H

#include "kernels/few_vector.h"
#include "kernels/pack12_block.h"

#define PACK12_UNIT_BYTES (PACK12_STRIP * PACK12_UNIT_ROW)
#define PACK12_AHEAD      4096 /* bytes fetched ahead of those used */

/* The vectors from a unit's first column on. */
struct pack12_x {
    const float *x;
    size_t stride;
};

/* Where the exceptions of a row stand: the next one, the end, and the unit of the next. */
struct pack12_cursor {
    size_t next, end, unit;
};

VECTOR_INLINE void pack12_vector_find(struct pack12_cursor *c, const struct pack12_block *b)
{
    c->unit =
        c->next < c->end ? (pack12_block_exception(b, c->next) >> 8) / PACK12_UNIT : SIZE_MAX;
}

VECTOR_INLINE struct pack12_cursor pack12_vector_begin(const struct pack12_block *b, size_t row)
{
    struct pack12_cursor c = {pack12_block_start(b, row), pack12_block_start(b, row + 1), 0};
    pack12_vector_find(&c, b);
    return c;
}

/* A unit of one row without exceptions. */
VECTOR_INLINE void pack12_vector_plain(vector sum[FEW_VECTORS][LANES_PARTS], const uint8_t *at,
                                       struct lanes_dictionary d, const struct pack12_x *x,
                                       const int V)
{
#pragma GCC unroll 2
    for (int pair = 0; pair < 2; pair++)
#pragma GCC unroll 2
        for (int j = 0; j < LANES_PARTS; j++) {
            lanes_bits bits[2];
            lanes_pack12(bits, at, pair, j, d);
#pragma GCC unroll 2
            for (int g = 0; g < 2; g++) {
                const struct lanes_pair w = lanes_pairs(bits[g]);
                const float *from = x->x + (2 * pair + g) * KERNELS_GROUP + j * VECTOR_LANES;
#pragma GCC unroll 8
                for (int v = 0; v < V; v++)
                    sum[v][j] = few_vector_add(sum[v][j], w, from + (size_t)v * x->stride);
            }
        }
}

/* A unit of one row with exceptions: as bf16 in memory, mended there. */
static inline void pack12_vector_mend(uint16_t w[PACK12_UNIT], const uint8_t *at,
                                      const struct pack12_block *b, struct pack12_cursor *c)
{
    const struct lanes_dictionary d = lanes_dictionary_of(b->header.upper);
    const size_t unit = c->unit;
#pragma GCC unroll 2
    for (int pair = 0; pair < 2; pair++)
#pragma GCC unroll 2
        for (int j = 0; j < LANES_PARTS; j++) {
            lanes_bits bits[2];
            lanes_pack12(bits, at, pair, j, d);
            lanes_store(w + 64 * pair + 2 * VECTOR_LANES * j, bits[0]);
            lanes_store(w + 64 * pair + 32 + 2 * VECTOR_LANES * j, bits[1]);
        }
    for (; c->unit == unit; pack12_vector_find(c, b)) {
        uint32_t e = pack12_block_exception(b, c->next++);
        ((uint8_t *)w)[2 * ((e >> 8) % PACK12_UNIT) + 1] = (uint8_t)e;
    }
}

VECTOR_INLINE void pack12_vector_mended(vector sum[FEW_VECTORS][LANES_PARTS],
                                        const uint16_t w[PACK12_UNIT], const struct pack12_x *x,
                                        const int V)
{
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++)
#pragma GCC unroll 2
        for (int j = 0; j < LANES_PARTS; j++) {
            const struct lanes_pair d = lanes_bf16((const uint8_t *)(w + g * KERNELS_GROUP), j);
#pragma GCC unroll 8
            for (int v = 0; v < V; v++)
                sum[v][j] = few_vector_add(sum[v][j], d,
                                           x->x + (size_t)v * x->stride + g * KERNELS_GROUP +
                                               j * VECTOR_LANES);
        }
}

/* R rows from `row` of the block on, within one strip, times V vectors. */
VECTOR_INLINE void pack12_vector_tile(const struct product *p, const struct pack12_block *b,
                                      size_t row, const int R, const int V)
{
    const struct lanes_dictionary d = lanes_dictionary_of(b->header.upper);
    const uint8_t *at = b->units + pack12_block_row(b, row);
    struct pack12_cursor c[PACK12_STRIP];
    vector sum[FEW_ROWS][FEW_VECTORS][LANES_PARTS];
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
        c[r] = pack12_vector_begin(b, row + (size_t)r);
#pragma GCC unroll 8
        for (int v = 0; v < V; v++)
#pragma GCC unroll 2
            for (int j = 0; j < LANES_PARTS; j++)
                sum[r][v][j] = vector_all(0.0f);
    }
    for (size_t unit = 0; unit < b->header.cols / PACK12_UNIT;
         unit++, at += PACK12_UNIT_BYTES) {
        for (size_t i = 0; i < (size_t)R * PACK12_UNIT_ROW; i += 64)
            __builtin_prefetch(at + PACK12_AHEAD + i);
        const struct pack12_x x = {p->x + unit * PACK12_UNIT, p->x_stride};
#pragma GCC unroll 4
        for (int r = 0; r < R; r++)
            if (__builtin_expect(c[r].unit == unit, 0)) {
                uint16_t w[PACK12_UNIT];
                pack12_vector_mend(w, at + r * PACK12_UNIT_ROW, b, &c[r]);
                pack12_vector_mended(sum[r], w, &x, V);
            } else {
                pack12_vector_plain(sum[r], at + r * PACK12_UNIT_ROW, d, &x, V);
            }
    }
    few_vector_end(p->y + (row - p->first), p->y_stride, sum, R, V);
}

/* Strips are taken R rows at a time; those a cut leaves alone, one by one. */
VECTOR_INLINE void pack12_vector_rows(const struct product *p, const int R, const int V)
{
    struct pack12_block b = pack12_block_open(p->w);
    size_t row = p->first, end = p->first + p->rows;
    while (row < end)
        if (row % (size_t)R == 0 && row + (size_t)R <= end) {
            pack12_vector_tile(p, &b, row, R, V);
            row += (size_t)R;
        } else {
            pack12_vector_tile(p, &b, row, 1, V);
            row += 1;
        }
}

#endif
