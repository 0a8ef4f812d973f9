/*
 * Rows times vectors with AVX-512 (F and BW): one register holds the sixteen lanes of a dot
 * product. Tiles as in product_avx2.c, with eight rows for one vector and eight vectors for one
 * row. The end of a row that is no multiple of 32 is a masked multiply-add: a lane that has no
 * element keeps its bits.
 */
#include <errno.h>
#include <immintrin.h>
#include <string.h>

#include "kernels/variants.h"

#define INLINE static inline __attribute__((always_inline))

struct group { /* 32 weights as fp32, by lane: the even elements and the odd ones */
    __m512 even, odd;
};

/* The tree of docs/numerics.md: j with j+8, then +4, +2, +1. */
INLINE float lanes_sum(__m512 l)
{
    __m256 upper = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(l), 1));
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(l), upper);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

INLINE __m512 group_fma(struct group w, const float *x, __m512 sum)
{
    sum = _mm512_fmadd_ps(w.even, _mm512_loadu_ps(x), sum);
    return _mm512_fmadd_ps(w.odd, _mm512_loadu_ps(x + 16), sum);
}

/* The first n < 32 elements of a group. */
INLINE __m512 group_fma_tail(struct group w, const float *x, __m512 sum, size_t n)
{
    __mmask16 even = (__mmask16)((1u << (n + 1) / 2) - 1), odd = (__mmask16)((1u << n / 2) - 1);
    sum = _mm512_mask3_fmadd_ps(w.even, _mm512_loadu_ps(x), sum, even);
    return _mm512_mask3_fmadd_ps(w.odd, _mm512_loadu_ps(x + 16), sum, odd);
}

/* ---- decoding -----------------------------------------------------------------------------
 */

INLINE struct group bf16_widen(__m512i w)
{
    struct group g = {
        _mm512_castsi512_ps(_mm512_slli_epi32(w, 16)),
        _mm512_castsi512_ps(_mm512_and_si512(w, _mm512_set1_epi32((int)0xffff0000u))),
    };
    return g;
}

INLINE struct group mxfp4_group(const uint8_t *w, uint8_t scale)
{
    const __m512 value = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f,
                                        -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f);
    int bits = scale ? (int)scale << 23 : 1 << 22; /* 2^-127 is subnormal */
    __m512 table = _mm512_mul_ps(value, _mm512_castsi512_ps(_mm512_set1_epi32(bits)));
    __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)w));
    struct group g = {
        _mm512_permutexvar_ps(bytes, table), /* looks at four bits only */
        _mm512_permutexvar_ps(_mm512_srli_epi32(bytes, 4), table),
    };
    return g;
}

enum format { FORMAT_BF16, FORMAT_F32, FORMAT_MXFP4 };

INLINE struct group decode(enum format f, const uint8_t *w, const uint8_t *scale, size_t g)
{
    if (f == FORMAT_BF16)
        return bf16_widen(_mm512_loadu_si512(w + g * 64));
    if (f == FORMAT_MXFP4)
        return mxfp4_group(w + g * 16, scale[g]);
    const float *v = (const float *)(w + g * 128);
    struct group d = {_mm512_loadu_ps(v), _mm512_loadu_ps(v + 16)};
    return d;
}

/* The last group of a row: nothing is read past its n elements. */
INLINE struct group decode_tail(enum format f, const uint8_t *w, size_t g, size_t n)
{
    if (f == FORMAT_BF16)
        return bf16_widen(_mm512_maskz_loadu_epi16((__mmask32)((1u << n) - 1), w + g * 64));
    return decode(f, w, NULL, g); /* f32 rows are padded to whole groups */
}

/* ---- tiles --------------------------------------------------------------------------------
 */

INLINE void tile(const struct product *p, enum format f, size_t r, size_t t, const int R,
                 const int V)
{
    const uint8_t *w = (const uint8_t *)p->w + r * p->w_stride;
    const uint8_t *scale = f == FORMAT_MXFP4 ? p->scale + r * p->scale_stride : NULL;
    const float *x = p->x + t * p->x_stride;
    __m512 sum[8][8];
    for (int i = 0; i < R; i++)
        for (int j = 0; j < V; j++)
            sum[i][j] = _mm512_setzero_ps();
    size_t groups = p->cols / KERNELS_GROUP, tail = p->cols % KERNELS_GROUP;
    for (size_t g = 0; g < groups; g++)
        for (int i = 0; i < R; i++) {
            struct group d =
                decode(f, w + (size_t)i * p->w_stride,
                       f == FORMAT_MXFP4 ? scale + (size_t)i * p->scale_stride : NULL, g);
            for (int j = 0; j < V; j++)
                sum[i][j] =
                    group_fma(d, x + (size_t)j * p->x_stride + g * KERNELS_GROUP, sum[i][j]);
        }
    for (int i = 0; i < R && tail; i++) {
        struct group d = decode_tail(f, w + (size_t)i * p->w_stride, groups, tail);
        for (int j = 0; j < V; j++)
            sum[i][j] = group_fma_tail(d, x + (size_t)j * p->x_stride + groups * KERNELS_GROUP,
                                       sum[i][j], tail);
    }
    for (int i = 0; i < R; i++)
        for (int j = 0; j < V; j++)
            p->y[(t + (size_t)j) * p->y_stride + r + (size_t)i] = lanes_sum(sum[i][j]);
}

INLINE void rows_one_vector(const struct product *p, enum format f, size_t t)
{
    size_t r = 0;
    for (; r + 8 <= p->rows; r += 8)
        tile(p, f, r, t, 8, 1);
    for (; r < p->rows; r++)
        tile(p, f, r, t, 1, 1);
}

INLINE void product(const struct product *p, enum format f)
{
    size_t t = 0;
    if (p->vectors == 1) {
        rows_one_vector(p, f, 0);
        return;
    }
    for (; t + 8 <= p->vectors; t += 8)
        for (size_t r = 0; r < p->rows; r++)
            tile(p, f, r, t, 1, 8);
    for (; t + 2 <= p->vectors; t += 2)
        for (size_t r = 0; r < p->rows; r++)
            tile(p, f, r, t, 1, 2);
    if (t < p->vectors)
        rows_one_vector(p, f, t);
}

void product_avx512_bf16(const struct product *p)
{
    product(p, FORMAT_BF16);
}

void product_avx512_f32(const struct product *p)
{
    product(p, FORMAT_F32);
}

int product_avx512_mxfp4(const struct product *p)
{
    for (size_t r = 0; r < p->rows; r++)
        if (memchr(p->scale + r * p->scale_stride, 255, p->cols / KERNELS_GROUP))
            return -EDOM;
    product(p, FORMAT_MXFP4);
    return 0;
}
