/*
 * Rows times many vectors: weights become fp32 once in a panel of few rows and columns that
 * stays in the first cache, and every vector is multiplied with it there.
 *
 * A sum that is not finished leaves its sixteen lanes in memory and takes them up again with
 * the next columns, so its order is that of a whole row. For up to PANEL_BATCH vectors the
 * weights are decoded once. Everything lies on the stack: 74 KB.
 */
#ifndef KERNELS_PANEL_VECTOR_H
#define KERNELS_PANEL_VECTOR_H

#include <stdbool.h>

#include "kernels/kernels.h"
#include "kernels/lanes.h"

#define PANEL_ROWS  8
#define PANEL_COLS  512
#define PANEL_BATCH 64
#define PANEL_TALL                                                                             \
    (VECTOR_LANES / 2) /* rows of a tile; with PANEL_WIDE vectors all registers */
#define PANEL_WIDE 3

struct panel {
    float w[PANEL_ROWS][PANEL_COLS + 16]; /* not a power of two apart: those alias */
    float lane[PANEL_BATCH][PANEL_ROWS][KERNELS_LANES];
};

/* Puts columns [from, from + n) of a row into lane order, the last group filled with -0, which
 * changes no lane. `from` is a multiple of PANEL_COLS. */
typedef void panel_vector_decode(float *out, const struct product *p, size_t row, size_t from,
                                 size_t n);

/* Asks for the first PANEL_COLS columns from `from` on; the row may be behind the last. */
typedef void panel_vector_fetch(const struct product *p, size_t row, size_t from);

/* One register of lanes of PANEL_TALL rows by V vectors, through the columns of the panel. */
VECTOR_INLINE void panel_vector_tile(struct panel *s, const float *x, size_t x_stride,
                                     size_t groups, const size_t at[3], const int V)
{
    const size_t t = at[0], row = at[1], lane = at[2];
    vector sum[PANEL_TALL][PANEL_WIDE];
#pragma GCC unroll 6
    for (int r = 0; r < PANEL_TALL; r++)
#pragma GCC unroll 4
        for (int v = 0; v < V; v++)
            sum[r][v] = vector_load(&s->lane[t + (size_t)v][row + (size_t)r][lane]);
    for (size_t i = lane; i < groups * KERNELS_GROUP; i += KERNELS_LANES) {
        vector xs[PANEL_WIDE];
#pragma GCC unroll 4
        for (int v = 0; v < V; v++)
            xs[v] = vector_load(x + (size_t)v * x_stride + i);
#pragma GCC unroll 6
        for (int r = 0; r < PANEL_TALL; r++) {
            vector w = vector_load(&s->w[row + (size_t)r][i]);
#pragma GCC unroll 4
            for (int v = 0; v < V; v++)
                sum[r][v] = vector_fma(w, xs[v], sum[r][v]);
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < PANEL_TALL; r++)
#pragma GCC unroll 4
        for (int v = 0; v < V; v++)
            vector_store(&s->lane[t + (size_t)v][row + (size_t)r][lane], sum[r][v]);
}

VECTOR_INLINE void panel_vector_tiles(struct panel *s, const float *x, size_t x_stride,
                                      size_t groups, size_t t, const int V)
{
    for (size_t row = 0; row < PANEL_ROWS; row += PANEL_TALL)
        for (size_t lane = 0; lane < KERNELS_LANES; lane += VECTOR_LANES)
            panel_vector_tile(s, x, x_stride, groups, (size_t[3]){t, row, lane}, V);
}

/* All vectors of the batch. */
VECTOR_INLINE void panel_vector_batch(struct panel *s, const float *x, size_t x_stride,
                                      size_t groups, size_t vectors)
{
    size_t t = 0;
    for (; t + PANEL_WIDE <= vectors; t += PANEL_WIDE)
        panel_vector_tiles(s, x + t * x_stride, x_stride, groups, t, PANEL_WIDE);
    for (; t + 2 <= vectors; t += 2)
        panel_vector_tiles(s, x + t * x_stride, x_stride, groups, t, 2);
    for (; t < vectors; t++)
        panel_vector_tiles(s, x + t * x_stride, x_stride, groups, t, 1);
}

VECTOR_INLINE void panel_vector_end(const struct panel *s, float *y, size_t y_stride,
                                    size_t rows, size_t vectors)
{
    for (size_t t = 0; t < vectors; t++)
        for (size_t row = 0; row < rows; row += 4) {
            vector lane[4][LANES_PARTS];
            float four[4];
#pragma GCC unroll 4
            for (size_t i = 0; i < 4; i++)
#pragma GCC unroll 2
                for (size_t j = 0; j < LANES_PARTS; j++)
                    lane[i][j] = vector_load(&s->lane[t][row + i][j * VECTOR_LANES]);
            lanes_sum4(four, lane);
            for (size_t i = 0; i < 4 && row + i < rows; i++)
                y[t * y_stride + row + i] = four[i];
        }
}

/* How a form of weights gets into the panel: both are inlined where it is used. */
struct panel_form {
    panel_vector_decode *decode;
    panel_vector_fetch *fetch;
};

/* The next panel is fetched while this one is decoded: its pieces of rows are too short for the
 * processor to see a stream in them. */
VECTOR_INLINE void panel_vector_fill(struct panel *s, const struct product *p,
                                     const struct panel_form form, size_t row, size_t from)
{
    const size_t rows = p->rows - row, n = p->cols - from;
    const bool last = n <= PANEL_COLS;
    for (size_t r = 0; r < PANEL_ROWS; r++) {
        form.decode(s->w[r], p, row + (r < rows ? r : rows - 1), from, last ? n : PANEL_COLS);
        form.fetch(p, row + r + (last ? PANEL_ROWS : 0), last ? 0 : from + PANEL_COLS);
    }
}

/* Missing rows of the last panel repeat the last row; their sums are not used. */
VECTOR_INLINE void panel_vector(const struct product *p, const struct panel_form form)
{
    struct panel s;
    for (size_t t = 0; t < p->vectors; t += PANEL_BATCH) {
        size_t vectors = p->vectors - t < PANEL_BATCH ? p->vectors - t : PANEL_BATCH;
        const float *x = p->x + t * p->x_stride;
        for (size_t row = 0; row < p->rows; row += PANEL_ROWS) {
            size_t rows = p->rows - row < PANEL_ROWS ? p->rows - row : PANEL_ROWS;
            __builtin_memset(s.lane, 0, vectors * sizeof s.lane[0]);
            for (size_t from = 0; from < p->cols; from += PANEL_COLS) {
                size_t n = p->cols - from < PANEL_COLS ? p->cols - from : PANEL_COLS;
                panel_vector_fill(&s, p, form, row, from);
                panel_vector_batch(&s, x + from, p->x_stride, kernels_padded(n) / KERNELS_GROUP,
                                   vectors);
            }
            panel_vector_end(&s, p->y + t * p->y_stride + row, p->y_stride, rows, vectors);
        }
    }
}

#endif
