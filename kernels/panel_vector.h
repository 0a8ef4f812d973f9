/*
 * Rows times many vectors: weights become fp32 once in a panel of few rows and columns that
 * stays in the first cache, and every vector is multiplied with it there.
 *
 * A sum that is not finished leaves its sixteen lanes in memory and takes them up again with
 * the next columns, so its order is that of a whole row. A block of rows goes through the
 * columns together: its vectors' columns stay in the second cache meanwhile. For up to
 * PANEL_BATCH vectors the weights are decoded once. Everything lies on the stack: 82 KB.
 */
#ifndef KERNELS_PANEL_VECTOR_H
#define KERNELS_PANEL_VECTOR_H

#include "kernels/kernels.h"
#include "kernels/lanes.h"

#define PANEL_ROWS   8
#define PANEL_STRIPS 2 /* panels one below the other, a block */
#define PANEL_BLOCK  (PANEL_ROWS * PANEL_STRIPS)
#define PANEL_COLS   512
#define PANEL_BATCH  64
#define PANEL_TALL                                                                             \
    (VECTOR_LANES / 2) /* rows of a tile; with PANEL_WIDE vectors all registers */
#define PANEL_WIDE 3

struct panel {
    float w[PANEL_ROWS][PANEL_COLS + 16]; /* not a power of two apart: those alias */
    float lane[PANEL_STRIPS][PANEL_BATCH][PANEL_ROWS][KERNELS_LANES];
};

/* Puts columns [from, from + n) of a row into lane order. `from` is a multiple of PANEL_COLS, n
 * of KERNELS_GROUP. */
typedef void panel_vector_decode(float *out, const struct product *p, size_t row, size_t from,
                                 size_t n);

/* Asks for them; the row may be behind the last. */
typedef void panel_vector_fetch(const struct product *p, size_t row, size_t from, size_t n);

/* How a form of weights gets into the panel: both are inlined where it is used. */
struct panel_form {
    panel_vector_decode *decode;
    panel_vector_fetch *fetch;
};

/* Where a panel begins, and the block of rows it belongs to. */
struct panel_place {
    size_t block, strip, from;
};

/* Columns of the panel that begins at `from`. */
static inline size_t panel_vector_cols(const struct product *p, size_t from)
{
    return p->cols - from < PANEL_COLS ? p->cols - from : PANEL_COLS;
}

/* One register of lanes of PANEL_TALL rows by V vectors, through the columns of the panel;
 * `at`: strip, vector, row, lane. */
VECTOR_INLINE void panel_vector_tile(struct panel *s, const float *x, size_t x_stride,
                                     size_t groups, const size_t at[4], const int V)
{
    float(*const sums)[PANEL_ROWS][KERNELS_LANES] = s->lane[at[0]];
    const size_t t = at[1], row = at[2], lane = at[3];
    vector sum[PANEL_TALL][PANEL_WIDE];
#pragma GCC unroll 8
    for (int r = 0; r < PANEL_TALL; r++)
#pragma GCC unroll 4
        for (int v = 0; v < V; v++)
            sum[r][v] = vector_load(&sums[t + (size_t)v][row + (size_t)r][lane]);
    for (size_t i = lane; i < groups * KERNELS_GROUP; i += KERNELS_LANES) {
        vector xs[PANEL_WIDE];
#pragma GCC unroll 4
        for (int v = 0; v < V; v++)
            xs[v] = vector_load(x + (size_t)v * x_stride + i);
#pragma GCC unroll 8
        for (int r = 0; r < PANEL_TALL; r++) {
            vector w = vector_load(&s->w[row + (size_t)r][i]);
#pragma GCC unroll 4
            for (int v = 0; v < V; v++)
                sum[r][v] = vector_fma(w, xs[v], sum[r][v]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < PANEL_TALL; r++)
#pragma GCC unroll 4
        for (int v = 0; v < V; v++)
            vector_store(&sums[t + (size_t)v][row + (size_t)r][lane], sum[r][v]);
}

VECTOR_INLINE void panel_vector_tiles(struct panel *s, const float *x, size_t x_stride,
                                      size_t groups, const size_t at[2], const int V)
{
    for (size_t row = 0; row < PANEL_ROWS; row += PANEL_TALL)
        for (size_t lane = 0; lane < KERNELS_LANES; lane += VECTOR_LANES)
            panel_vector_tile(s, x, x_stride, groups, (size_t[4]){at[0], at[1], row, lane}, V);
}

/* Asks for one of the pieces of rows that the next block's panels will decode, counted along
 * its rows: memory likes a line, not a column. What is behind the last row does no harm. */
VECTOR_INLINE void panel_vector_ask(const struct product *p, const struct panel_form form,
                                    size_t block, size_t piece)
{
    const size_t pieces = (p->cols + PANEL_COLS - 1) / PANEL_COLS;
    const size_t from = piece % pieces * PANEL_COLS;
    form.fetch(p, block + PANEL_BLOCK + piece / pieces, from, panel_vector_cols(p, from));
}

/* All vectors of the batch. Meanwhile the next block is fetched, a piece with each few vectors:
 * the panels' pieces of rows are too short for the processor to see a stream in them, and all
 * at once they would fill the queue of what is missing and stop the multiplying. */
VECTOR_INLINE void panel_vector_batch(struct panel *s, const struct product *p,
                                      const struct panel_form form, struct panel_place at,
                                      size_t first, size_t vectors)
{
    const size_t groups = panel_vector_cols(p, at.from) / KERNELS_GROUP;
    const float *x = p->x + first * p->x_stride + at.from;
    const size_t piece = (at.from / PANEL_COLS * PANEL_STRIPS + at.strip) * PANEL_ROWS;
    for (size_t t = 0, fetched = 0; t < vectors; t += PANEL_WIDE) {
        const size_t left = vectors - t;
        for (; fetched * vectors < (t + PANEL_WIDE) * PANEL_ROWS && fetched < PANEL_ROWS;
             fetched++)
            panel_vector_ask(p, form, at.block, piece + fetched);
        const float *xs = x + t * p->x_stride;
        const size_t tile[2] = {at.strip, t};
        if (left >= PANEL_WIDE)
            panel_vector_tiles(s, xs, p->x_stride, groups, tile, PANEL_WIDE);
        else if (left == 2)
            panel_vector_tiles(s, xs, p->x_stride, groups, tile, 2);
        else
            panel_vector_tiles(s, xs, p->x_stride, groups, tile, 1);
    }
}

VECTOR_INLINE void panel_vector_end(float (*sums)[PANEL_ROWS][KERNELS_LANES], float *y,
                                    size_t y_stride, size_t rows, size_t vectors)
{
    for (size_t t = 0; t < vectors; t++)
        for (size_t row = 0; row < rows; row += 4) {
            vector lane[4][LANES_PARTS];
            float four[4];
#pragma GCC unroll 4
            for (size_t i = 0; i < 4; i++)
#pragma GCC unroll 2
                for (size_t j = 0; j < LANES_PARTS; j++)
                    lane[i][j] = vector_load(&sums[t][row + i][j * VECTOR_LANES]);
            lanes_sum4(four, lane);
            for (size_t i = 0; i < 4 && row + i < rows; i++)
                y[t * y_stride + row + i] = four[i];
        }
}

/* Rows that are missing in the last panel repeat the last row; their sums are not used. */
VECTOR_INLINE void panel_vector_fill(struct panel *s, const struct product *p,
                                     const struct panel_form form, struct panel_place at)
{
    const size_t row = at.block + at.strip * PANEL_ROWS, rows = p->rows - row;
    for (size_t r = 0; r < PANEL_ROWS; r++)
        form.decode(s->w[r], p, row + (r < rows ? r : rows - 1), at.from,
                    panel_vector_cols(p, at.from));
}

/* The rows of a block times the vectors of a batch. */
VECTOR_INLINE void panel_vector_block(struct panel *s, const struct product *p,
                                      const struct panel_form form, size_t block, size_t first,
                                      size_t vectors)
{
    const size_t rows = p->rows - block < PANEL_BLOCK ? p->rows - block : PANEL_BLOCK;
    const size_t strips = (rows + PANEL_ROWS - 1) / PANEL_ROWS;
    for (size_t i = 0; i < strips; i++)
        __builtin_memset(s->lane[i], 0, vectors * sizeof s->lane[i][0]);
    struct panel_place at = {.block = block};
    for (; at.from < p->cols; at.from += PANEL_COLS)
        for (at.strip = 0; at.strip < strips; at.strip++) {
            panel_vector_fill(s, p, form, at);
            panel_vector_batch(s, p, form, at, first, vectors);
        }
    for (size_t i = 0; i < strips; i++) {
        const size_t row = i * PANEL_ROWS, left = rows - row;
        panel_vector_end(s->lane[i], p->y + first * p->y_stride + block + row, p->y_stride,
                         left < PANEL_ROWS ? left : PANEL_ROWS, vectors);
    }
}

VECTOR_INLINE void panel_vector(const struct product *p, const struct panel_form form)
{
    struct panel s;
    for (size_t t = 0; t < p->vectors; t += PANEL_BATCH)
        for (size_t block = 0; block < p->rows; block += PANEL_BLOCK)
            panel_vector_block(&s, p, form, block, t,
                               p->vectors - t < PANEL_BATCH ? p->vectors - t : PANEL_BATCH);
}

#endif
