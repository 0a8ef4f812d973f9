/*
 * Rows times few vectors: weights become fp32 in registers and meet every vector there.
 *
 * A tile of R rows by V vectors has its lanes in registers, as far as these go; R and V are
 * literals where it is used, so that the loops unroll. Rows are read side by side;
 * while they are, the next R rows are fetched as one linear stream, because the processor's own
 * prefetching begins anew with each row and each page.
 */
#ifndef KERNELS_FEW_VECTOR_H
#define KERNELS_FEW_VECTOR_H

#include "kernels/kernels.h"
#include "kernels/lanes.h"

#define FEW_ROWS    12
#define FEW_VECTORS 6

enum few_form {
    FEW_FORM_BF16,
    FEW_FORM_F32,
    FEW_FORM_MXFP4,
};

/* R rows side by side; R and V are literals once all is inlined. */
struct few_rows {
    enum few_form form;
    int R, V;
    const uint8_t *w, *scale;
    size_t w_stride, scale_stride;
};

/* Register `part` of group g of a row. */
VECTOR_INLINE struct lanes_pair few_vector_group(enum few_form form, const uint8_t *w,
                                                 const uint8_t *scale, size_t g, const int part)
{
#ifdef KERNELS_AVX512
    if (form == FEW_FORM_MXFP4)
        return lanes_mxfp4(w + g * 16, scale[g]);
#endif
    return form == FEW_FORM_BF16 ? lanes_bf16(w + g * 64, part) : lanes_f32(w + g * 128, part);
}

/* The last, incomplete group of n elements, made whole in 128 bytes. What is missing is -0: its
 * products with the zeros behind x are -0, which leaves any lane as it is. */
static inline void few_vector_tail(enum few_form form, uint8_t whole[128], const uint8_t *w,
                                   size_t n)
{
    const uint16_t half = 0x8000;
    const float zero = -0.0f;
    for (size_t i = 0; i < KERNELS_GROUP; i++) {
        size_t at = (i & 1) * 16 + i / 2;
        if (form == FEW_FORM_BF16)
            __builtin_memcpy(whole + 2 * i, i < n ? (const void *)(w + 2 * i) : &half, 2);
        else
            __builtin_memcpy(whole + 4 * at, i < n ? (const void *)(w + 4 * at) : &zero, 4);
    }
}

/* One register of lanes: the even elements and then the odd ones. */
VECTOR_INLINE vector few_vector_add(vector sum, struct lanes_pair w, const float *x)
{
    sum = vector_fma(w.even, vector_load(x), sum);
    return vector_fma(w.odd, vector_load(x + 16), sum);
}

/* Adds the lanes of a tile and puts the results where they belong. */
VECTOR_INLINE void few_vector_end(float *y, size_t y_stride,
                                  vector sum[FEW_ROWS][FEW_VECTORS][LANES_PARTS], const int R,
                                  const int V)
{
#pragma GCC unroll 8
    for (int v = 0; v < V; v++)
#pragma GCC unroll 3
        for (int r = 0; r < R; r += 4) {
            vector lane[4][LANES_PARTS];
            float four[4];
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++)
#pragma GCC unroll 2
                for (int j = 0; j < LANES_PARTS; j++)
                    lane[i][j] = sum[r + i < R ? r + i : r][v][j];
            lanes_sum4(four, lane);
            for (int i = 0; i < 4 && r + i < R; i++)
                y[(size_t)v * y_stride + (size_t)(r + i)] = four[i];
        }
}

/* One group of R rows times V vectors. The vectors' part is loaded once for all rows. */
VECTOR_INLINE void few_vector_step(vector sum[FEW_ROWS][FEW_VECTORS][LANES_PARTS],
                                   const struct few_rows *rows, size_t g, const float *x,
                                   const size_t x_stride)
{
#pragma GCC unroll 2
    for (int j = 0; j < LANES_PARTS; j++) {
        vector even[FEW_VECTORS], odd[FEW_VECTORS];
#pragma GCC unroll 8
        for (int v = 0; v < rows->V; v++) {
            even[v] = vector_load(x + (size_t)v * x_stride + j * VECTOR_LANES);
            odd[v] = vector_load(x + (size_t)v * x_stride + 16 + j * VECTOR_LANES);
        }
#pragma GCC unroll 12
        for (int r = 0; r < rows->R; r++) {
            const uint8_t *w = rows->w + (size_t)r * rows->w_stride;
            const uint8_t *scale = rows->scale + (size_t)r * rows->scale_stride;
            struct lanes_pair d = few_vector_group(rows->form, w, scale, g, j);
#pragma GCC unroll 8
            for (int v = 0; v < rows->V; v++)
                sum[r][v][j] =
                    vector_fma(d.odd, odd[v], vector_fma(d.even, even[v], sum[r][v][j]));
        }
    }
}

/* R rows of p from `row` on times V vectors. */
VECTOR_INLINE void few_vector_tile(const struct product *p, enum few_form form, size_t row,
                                   const int R, const int V)
{
    const size_t groups = p->cols / KERNELS_GROUP, tail = p->cols % KERNELS_GROUP;
    const size_t group_bytes = form == FEW_FORM_BF16 ? 64 : form == FEW_FORM_F32 ? 128 : 16;
    const struct few_rows rows = {.form = form,
                                  .R = R,
                                  .V = V,
                                  .w = (const uint8_t *)p->w + row * p->w_stride,
                                  .w_stride = p->w_stride,
                                  .scale = p->scale + row * p->scale_stride,
                                  .scale_stride = p->scale_stride};
    const uint8_t *next = rows.w + (size_t)R * p->w_stride;
    const size_t step = (size_t)R * group_bytes;
    vector sum[FEW_ROWS][FEW_VECTORS][LANES_PARTS];
#pragma GCC unroll 12
    for (int r = 0; r < R; r++)
#pragma GCC unroll 8
        for (int v = 0; v < V; v++)
#pragma GCC unroll 2
            for (int j = 0; j < LANES_PARTS; j++)
                sum[r][v][j] = vector_all(0.0f);
    for (size_t g = 0; g < groups; g++) {
#pragma GCC unroll 16
        for (size_t i = 0; i < step; i += 64)
            __builtin_prefetch(next + g * step + i);
        few_vector_step(sum, &rows, g, p->x + g * KERNELS_GROUP, p->x_stride);
    }
    if (tail && form != FEW_FORM_MXFP4) {
        uint8_t whole[FEW_ROWS][128];
        struct few_rows last = rows;
        for (int r = 0; r < R; r++)
            few_vector_tail(form, whole[r],
                            rows.w + (size_t)r * p->w_stride + groups * group_bytes, tail);
        last.w = whole[0];
        last.w_stride = sizeof whole[0];
        few_vector_step(sum, &last, 0, p->x + groups * KERNELS_GROUP, p->x_stride);
    }
    few_vector_end(p->y + row, p->y_stride, sum, R, V);
}

/* All rows times V vectors, R at a time, then four, and then one by one. */
VECTOR_INLINE void few_vector_rows(const struct product *p, enum few_form form, const int R,
                                   const int V)
{
    size_t row = 0;
    for (; row + (size_t)R <= p->rows; row += (size_t)R)
        few_vector_tile(p, form, row, R, V);
    for (; R > 4 && row + 4 <= p->rows; row += 4)
        few_vector_tile(p, form, row, 4, V);
    for (; row < p->rows; row++)
        few_vector_tile(p, form, row, 1, V);
}

#endif
