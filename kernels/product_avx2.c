/*
 * Rows times vectors with AVX2 and FMA: two registers hold the sixteen lanes of a dot product.
 *
 * A tile is R rows by V vectors held in registers; its R and V are constants, so that the inner
 * loops unroll. One vector takes four rows at a time (the vector is loaded once for all), more
 * vectors take four at a time with one row (the weights are decoded once for all). The order
 * within a dot product is that of product_c.c whatever the tile.
 */
#include <errno.h>
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "kernels/variants.h"

#define INLINE static inline __attribute__((always_inline))

struct lanes { /* 0-7 and 8-15 */
    __m256 low, high;
};

struct group { /* 32 weights as fp32, by lane: the even elements and the odd ones */
    struct lanes even, odd;
};

INLINE float lanes_sum(struct lanes l)
{
    __m256 eight = _mm256_add_ps(l.low, l.high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

INLINE struct lanes lanes_fma(struct lanes w, const float *x, struct lanes sum)
{
    sum.low = _mm256_fmadd_ps(w.low, _mm256_loadu_ps(x), sum.low);
    sum.high = _mm256_fmadd_ps(w.high, _mm256_loadu_ps(x + 8), sum.high);
    return sum;
}

INLINE struct lanes group_fma(struct group w, const float *x, struct lanes sum)
{
    return lanes_fma(w.odd, x + 16, lanes_fma(w.even, x, sum));
}

/* ---- decoding -----------------------------------------------------------------------------
 */

INLINE struct group bf16_group(const uint8_t *w)
{
    const __m256i upper = _mm256_set1_epi32((int)0xffff0000u);
    __m256i a = _mm256_loadu_si256((const __m256i *)w);
    __m256i b = _mm256_loadu_si256((const __m256i *)(w + 32));
    struct group g = {
        {_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)),
         _mm256_castsi256_ps(_mm256_slli_epi32(b, 16))},
        {_mm256_castsi256_ps(_mm256_and_si256(a, upper)),
         _mm256_castsi256_ps(_mm256_and_si256(b, upper))},
    };
    return g;
}

INLINE struct group f32_group(const uint8_t *w)
{
    const float *f = (const float *)w;
    struct group g = {{_mm256_loadu_ps(f), _mm256_loadu_ps(f + 8)},
                      {_mm256_loadu_ps(f + 16), _mm256_loadu_ps(f + 24)}};
    return g;
}

/* Eight nibbles in the low bits of dwords, by a table of the eight scaled magnitudes. */
INLINE __m256 nibbles(__m256i n, __m256 table)
{
    __m256i sign = _mm256_slli_epi32(_mm256_and_si256(n, _mm256_set1_epi32(8)), 28);
    return _mm256_or_ps(_mm256_permutevar8x32_ps(table, n), _mm256_castsi256_ps(sign));
}

INLINE struct group mxfp4_group(const uint8_t *w, uint8_t scale)
{
    const __m256 magnitude = _mm256_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
    int bits = scale ? (int)scale << 23 : 1 << 22; /* 2^-127 is subnormal */
    __m256 table = _mm256_mul_ps(magnitude, _mm256_castsi256_ps(_mm256_set1_epi32(bits)));
    __m128i bytes = _mm_loadu_si128((const __m128i *)w);
    __m256i a = _mm256_cvtepu8_epi32(bytes);
    __m256i b = _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8));
    struct group g = {
        {nibbles(a, table), nibbles(b, table)},
        {nibbles(_mm256_srli_epi32(a, 4), table), nibbles(_mm256_srli_epi32(b, 4), table)},
    };
    return g;
}

enum format { FORMAT_BF16, FORMAT_F32, FORMAT_MXFP4 };

INLINE size_t format_group_bytes(enum format f)
{
    return f == FORMAT_BF16 ? 64 : f == FORMAT_F32 ? 128 : 16;
}

INLINE struct group decode(enum format f, const uint8_t *w, const uint8_t *scale, size_t g)
{
    if (f == FORMAT_BF16)
        return bf16_group(w + g * 64);
    if (f == FORMAT_F32)
        return f32_group(w + g * 128);
    return mxfp4_group(w + g * 16, scale[g]);
}

/* ---- the end of a row that is no multiple of 32 -------------------------------------------
 */

static float tail_value(enum format f, const uint8_t *w, size_t i)
{
    float value;
    if (f == FORMAT_BF16) {
        uint16_t half;
        memcpy(&half, w + 2 * i, sizeof half);
        uint32_t bits = (uint32_t)half << 16;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    memcpy(&value, w + 4 * ((i & 1) * 16 + (i >> 1)), sizeof value);
    return value;
}

/* `w` and `x` at the last, incomplete group of n elements. */
static float lanes_sum_tail(struct lanes l, enum format f, const uint8_t *w, const float *x,
                            size_t n)
{
    float lane[KERNELS_LANES];
    _mm256_storeu_ps(lane, l.low);
    _mm256_storeu_ps(lane + 8, l.high);
    for (size_t i = 0; i < n; i++) {
        size_t j = i >> 1;
        lane[j] = fmaf(tail_value(f, w, i), x[(i & 1) * 16 + j], lane[j]);
    }
    l.low = _mm256_loadu_ps(lane);
    l.high = _mm256_loadu_ps(lane + 8);
    return lanes_sum(l);
}

/* ---- tiles --------------------------------------------------------------------------------
 */

INLINE void tile(const struct product *p, enum format f, size_t r, size_t t, const int R,
                 const int V)
{
    const uint8_t *w = (const uint8_t *)p->w + r * p->w_stride;
    const uint8_t *scale = f == FORMAT_MXFP4 ? p->scale + r * p->scale_stride : NULL;
    const float *x = p->x + t * p->x_stride;
    struct lanes sum[4][4];
    for (int i = 0; i < R; i++)
        for (int j = 0; j < V; j++)
            sum[i][j] = (struct lanes){_mm256_setzero_ps(), _mm256_setzero_ps()};
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
    for (int i = 0; i < R; i++)
        for (int j = 0; j < V; j++) {
            const uint8_t *end = w + (size_t)i * p->w_stride + groups * format_group_bytes(f);
            const float *last = x + (size_t)j * p->x_stride + groups * KERNELS_GROUP;
            p->y[(t + (size_t)j) * p->y_stride + r + (size_t)i] =
                tail ? lanes_sum_tail(sum[i][j], f, end, last, tail) : lanes_sum(sum[i][j]);
        }
}

INLINE void rows_one_vector(const struct product *p, enum format f, size_t t)
{
    size_t r = 0;
    for (; r + 4 <= p->rows; r += 4)
        tile(p, f, r, t, 4, 1);
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
    for (; t + 4 <= p->vectors; t += 4)
        for (size_t r = 0; r < p->rows; r++)
            tile(p, f, r, t, 1, 4);
    for (; t + 2 <= p->vectors; t += 2)
        for (size_t r = 0; r < p->rows; r++)
            tile(p, f, r, t, 1, 2);
    if (t < p->vectors)
        rows_one_vector(p, f, t);
}

void product_avx2_bf16(const struct product *p)
{
    product(p, FORMAT_BF16);
}

void product_avx2_f32(const struct product *p)
{
    product(p, FORMAT_F32);
}

int product_avx2_mxfp4(const struct product *p)
{
    for (size_t r = 0; r < p->rows; r++)
        if (memchr(p->scale + r * p->scale_stride, 255, p->cols / KERNELS_GROUP))
            return -EDOM;
    product(p, FORMAT_MXFP4);
    return 0;
}
