/*
 * Eight fp32 numbers at a time: the words in which kernels/..._vector.h are written, for AVX2
 * and FMA. vector_avx512.h has the same words for sixteen.
 *
 * *_some load and store the first n < VECTOR_LANES numbers, touch no memory behind them and
 * give 0 for the rest.
 */
#ifndef KERNELS_VECTOR_AVX2_H
#define KERNELS_VECTOR_AVX2_H

#include <immintrin.h>
#include <sleef.h>
#include <stddef.h>
#include <stdint.h>

#define VECTOR_LANES  8
#define VECTOR_INLINE static inline __attribute__((always_inline))

typedef __m256 vector;
typedef __m256d vector_half; /* half as many doubles */

VECTOR_INLINE vector vector_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

VECTOR_INLINE void vector_store(float *p, vector v)
{
    _mm256_storeu_ps(p, v);
}

VECTOR_INLINE __m256i vector_mask(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

VECTOR_INLINE vector vector_load_some(const float *p, size_t n)
{
    return _mm256_maskload_ps(p, vector_mask(n));
}

VECTOR_INLINE void vector_store_some(float *p, vector v, size_t n)
{
    _mm256_maskstore_ps(p, vector_mask(n), v);
}

VECTOR_INLINE vector vector_all(float x)
{
    return _mm256_set1_ps(x);
}

VECTOR_INLINE vector vector_add(vector a, vector b)
{
    return _mm256_add_ps(a, b);
}

VECTOR_INLINE vector vector_sub(vector a, vector b)
{
    return _mm256_sub_ps(a, b);
}

VECTOR_INLINE vector vector_mul(vector a, vector b)
{
    return _mm256_mul_ps(a, b);
}

VECTOR_INLINE vector vector_div(vector a, vector b)
{
    return _mm256_div_ps(a, b);
}

/* a b + c, rounded once */
VECTOR_INLINE vector vector_fma(vector a, vector b, vector c)
{
    return _mm256_fmadd_ps(a, b, c);
}

VECTOR_INLINE vector vector_max(vector a, vector b)
{
    return _mm256_max_ps(a, b);
}

VECTOR_INLINE vector vector_negative(vector a)
{
    return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f));
}

VECTOR_INLINE vector vector_exp(vector a)
{
    return Sleef_finz_expf8_u10avx2(a);
}

VECTOR_INLINE vector vector_tanh(vector a)
{
    return Sleef_finz_tanhf8_u10avx2(a);
}

/* VECTOR_LANES bf16 numbers, widened. */
VECTOR_INLINE vector vector_load_bf16(const uint8_t *p)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

/* VECTOR_LANES / 2 numbers as doubles. */
VECTOR_INLINE vector_half vector_half_load(const float *p)
{
    return _mm256_cvtps_pd(_mm_loadu_ps(p));
}

VECTOR_INLINE vector_half vector_half_all(double x)
{
    return _mm256_set1_pd(x);
}

VECTOR_INLINE vector_half vector_half_add(vector_half a, vector_half b)
{
    return _mm256_add_pd(a, b);
}

VECTOR_INLINE vector_half vector_half_mul(vector_half a, vector_half b)
{
    return _mm256_mul_pd(a, b);
}

VECTOR_INLINE vector_half vector_half_fma(vector_half a, vector_half b, vector_half c)
{
    return _mm256_fmadd_pd(a, b, c);
}

VECTOR_INLINE void vector_half_store(double *p, vector_half v)
{
    _mm256_storeu_pd(p, v);
}

/* Whether every |a| < most; no NaN is. */
VECTOR_INLINE int vector_half_below(vector_half a, double most)
{
    __m256d size = _mm256_andnot_pd(_mm256_set1_pd(-0.0), a);
    return _mm256_movemask_pd(_mm256_cmp_pd(size, _mm256_set1_pd(most), _CMP_LT_OQ)) == 15;
}

/* sum += the integers nearest to a, ties to even, for |a| < 2^51: adding 3 2^51 rounds, and the
 * integer is then in the low bits. */
VECTOR_INLINE void vector_half_count(int64_t *sum, vector_half a)
{
    const __m256d magic = _mm256_set1_pd(0x1.8p52);
    __m256i bits = _mm256_sub_epi64(_mm256_castpd_si256(_mm256_add_pd(a, magic)),
                                    _mm256_castpd_si256(magic));
    __m256i *at = (__m256i *)sum;
    _mm256_storeu_si256(at, _mm256_add_epi64(_mm256_loadu_si256(at), bits));
}

#endif
