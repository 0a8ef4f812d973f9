/*
 * MXFP4 rows times vectors for AVX2. Up to three vectors meet the weights in registers, two
 * rows side by side; more of them a panel of decoded weights.
 */
#include <errno.h>

#include "kernels/decode_vector.h"
#include "kernels/pair_avx2.h"
#include "kernels/variants.h"

#define FEW   3
#define BLOCK 96 /* rows whose scales are looked through together */

/* The rows of a tile: pairs of neighbours, the last row again where there is none. */
struct tile {
    const uint8_t *w[4], *scale[4];
    const uint8_t *next, *next_scale;
    size_t rows, groups;
};

static inline struct tile tile_at(const struct product *p, size_t row, size_t rows)
{
    struct tile t = {.rows = p->rows - row < rows ? p->rows - row : rows,
                     .groups = p->cols / KERNELS_GROUP};
    for (size_t i = 0; i < rows; i++) {
        size_t r = row + (i < t.rows ? i : t.rows - 1);
        t.w[i] = (const uint8_t *)p->w + r * p->w_stride;
        t.scale[i] = p->scale + r * p->scale_stride;
    }
    t.next = t.w[0] + rows * p->w_stride;
    t.next_scale = t.scale[0] + rows * p->scale_stride;
    return t;
}

VECTOR_INLINE void mxfp4_avx2_add(vector sum[PAIR_PARTS], const struct pair_group *w,
                                  const float *x)
{
    __asm__("" : "+r"(x)); /* kept for the next pair, the loaded x would push sums to memory */
#pragma GCC unroll 4
    for (int q = 0; q < PAIR_PARTS; q++) {
        sum[q] = _mm256_fmadd_ps(w->even[q], pair_avx2_both(x + 4 * q), sum[q]);
        sum[q] = _mm256_fmadd_ps(w->odd[q], pair_avx2_both(x + 16 + 4 * q), sum[q]);
    }
}

/* The sums of P pairs and one vector. */
VECTOR_INLINE void mxfp4_avx2_end(float *y, size_t rows, vector sum[][FEW][PAIR_PARTS],
                                  const int v, const int P)
{
    float four[4];
    vector a = pair_avx2_quarter(sum[0][v]), b = pair_avx2_quarter(sum[P - 1][v]);
    _mm_storeu_ps(four,
                  lanes_avx2_four(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1),
                                  _mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1)));
    for (size_t i = 0; i < rows; i++)
        y[i] = four[i];
}

/* P pairs of rows times V vectors: 4 P V sums in registers. */
VECTOR_INLINE void mxfp4_avx2_tile(const struct product *p, size_t row, const int P,
                                   const int V)
{
    const struct tile t = tile_at(p, row, 2 * (size_t)P);
    const size_t step = 32 * (size_t)P;
    vector sum[2][FEW][PAIR_PARTS];
#pragma GCC unroll 2
    for (int i = 0; i < P; i++)
#pragma GCC unroll 3
        for (int v = 0; v < V; v++)
#pragma GCC unroll 4
            for (int q = 0; q < PAIR_PARTS; q++)
                sum[i][v][q] = vector_all(0.0f);
    for (size_t g = 0; g < t.groups; g++) {
        __builtin_prefetch(t.next + g * step);
        if (g % 16 == 0)
            __builtin_prefetch(t.next_scale + g * 2 * (size_t)P);
#pragma GCC unroll 2
        for (int i = 0; i < P; i++) {
            const struct pair_group w =
                pair_avx2_group(t.w[2 * i] + 16 * g, t.w[2 * i + 1] + 16 * g, t.scale[2 * i][g],
                                t.scale[2 * i + 1][g]);
#pragma GCC unroll 3
            for (int v = 0; v < V; v++)
                mxfp4_avx2_add(sum[i][v], &w,
                               p->x + (size_t)v * p->x_stride + g * KERNELS_GROUP);
        }
    }
#pragma GCC unroll 3
    for (int v = 0; v < V; v++)
        mxfp4_avx2_end(p->y + (size_t)v * p->y_stride + row, t.rows, sum, v, P);
}

/* Two groups of one row are a pair as well. */
VECTOR_INLINE void mxfp4_avx2_decode(float *out, const struct product *p, size_t row,
                                     size_t from, size_t n)
{
    const uint8_t *w = (const uint8_t *)p->w + row * p->w_stride + from / 2;
    const uint8_t *scale = p->scale + row * p->scale_stride + from / KERNELS_GROUP;
    const size_t groups = n / KERNELS_GROUP;
    for (size_t g = 0; g < groups; g += 2) {
        const size_t h = g + 1 < groups ? g + 1 : g;
        const struct pair_group d = pair_avx2_group(w + 16 * g, w + 16 * h, scale[g], scale[h]);
        float *a = out + g * KERNELS_GROUP, *b = out + h * KERNELS_GROUP;
#pragma GCC unroll 2
        for (int q = 0; q < PAIR_PARTS; q += 2) {
            vector_store(b + 4 * q, _mm256_permute2f128_ps(d.even[q], d.even[q + 1], 0x31));
            vector_store(b + 16 + 4 * q, _mm256_permute2f128_ps(d.odd[q], d.odd[q + 1], 0x31));
            vector_store(a + 4 * q, _mm256_permute2f128_ps(d.even[q], d.even[q + 1], 0x20));
            vector_store(a + 16 + 4 * q, _mm256_permute2f128_ps(d.odd[q], d.odd[q + 1], 0x20));
        }
    }
}

static void block(const struct product *p)
{
    size_t row = 0;
    if (p->vectors == 1)
        for (; row < p->rows; row += 4)
            mxfp4_avx2_tile(p, row, 2, 1);
    else if (p->vectors == 2)
        for (; row < p->rows; row += 2)
            mxfp4_avx2_tile(p, row, 1, 2);
    else if (p->vectors == FEW)
        for (; row < p->rows; row += 2)
            mxfp4_avx2_tile(p, row, 1, FEW);
    else
        panel_vector(p, (struct panel_form){mxfp4_avx2_decode, decode_vector_fetch_mxfp4});
}

int mxfp4_avx2_product(const struct product *p)
{
    for (size_t row = 0; row < p->rows; row += BLOCK) {
        struct product b = *p;
        b.rows = p->rows - row < BLOCK ? p->rows - row : BLOCK;
        if (scales_bad(p, row, b.rows))
            return -EDOM;
        b.w = (const uint8_t *)p->w + row * p->w_stride;
        b.scale = p->scale + row * p->scale_stride;
        b.y = p->y + row;
        block(&b);
    }
    return 0;
}
