/* Sixteen fp32 numbers at a time, for AVX-512 (F, BW): the words of vector_avx2.h. */
#ifndef KERNELS_VECTOR_AVX512_H
#define KERNELS_VECTOR_AVX512_H

#include <immintrin.h>
#include <sleef.h>
#include <stddef.h>
#include <stdint.h>

#define VECTOR_LANES  16
#define VECTOR_INLINE static inline __attribute__((always_inline))

typedef __m512 vector;
typedef __m512d vector_half;

VECTOR_INLINE vector vector_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

VECTOR_INLINE void vector_store(float *p, vector v)
{
    _mm512_storeu_ps(p, v);
}

VECTOR_INLINE __mmask16 vector_mask(size_t n)
{
    return (__mmask16)((1u << n) - 1);
}

VECTOR_INLINE vector vector_load_some(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps(vector_mask(n), p);
}

VECTOR_INLINE void vector_store_some(float *p, vector v, size_t n)
{
    _mm512_mask_storeu_ps(p, vector_mask(n), v);
}

VECTOR_INLINE vector vector_all(float x)
{
    return _mm512_set1_ps(x);
}

VECTOR_INLINE vector vector_add(vector a, vector b)
{
    return _mm512_add_ps(a, b);
}

VECTOR_INLINE vector vector_sub(vector a, vector b)
{
    return _mm512_sub_ps(a, b);
}

VECTOR_INLINE vector vector_mul(vector a, vector b)
{
    return _mm512_mul_ps(a, b);
}

VECTOR_INLINE vector vector_div(vector a, vector b)
{
    return _mm512_div_ps(a, b);
}

VECTOR_INLINE vector vector_fma(vector a, vector b, vector c)
{
    return _mm512_fmadd_ps(a, b, c);
}

VECTOR_INLINE vector vector_max(vector a, vector b)
{
    return _mm512_max_ps(a, b);
}

VECTOR_INLINE vector vector_negative(vector a)
{
    return _mm512_castsi512_ps(
        _mm512_xor_si512(_mm512_castps_si512(a), _mm512_set1_epi32(INT32_MIN)));
}

VECTOR_INLINE vector vector_exp(vector a)
{
    return Sleef_finz_expf16_u10avx512f(a);
}

VECTOR_INLINE vector vector_tanh(vector a)
{
    return Sleef_finz_tanhf16_u10avx512f(a);
}

VECTOR_INLINE vector vector_load_bf16(const uint8_t *p)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

VECTOR_INLINE vector_half vector_half_load(const float *p)
{
    return _mm512_cvtps_pd(_mm256_loadu_ps(p));
}

VECTOR_INLINE vector_half vector_half_all(double x)
{
    return _mm512_set1_pd(x);
}

VECTOR_INLINE vector_half vector_half_add(vector_half a, vector_half b)
{
    return _mm512_add_pd(a, b);
}

VECTOR_INLINE vector_half vector_half_mul(vector_half a, vector_half b)
{
    return _mm512_mul_pd(a, b);
}

VECTOR_INLINE vector_half vector_half_fma(vector_half a, vector_half b, vector_half c)
{
    return _mm512_fmadd_pd(a, b, c);
}

VECTOR_INLINE void vector_half_store(double *p, vector_half v)
{
    _mm512_storeu_pd(p, v);
}

VECTOR_INLINE int vector_half_below(vector_half a, double most)
{
    __m512d size = _mm512_abs_pd(a);
    return _mm512_cmp_pd_mask(size, _mm512_set1_pd(most), _CMP_LT_OQ) == 255;
}

VECTOR_INLINE void vector_half_count(int64_t *sum, vector_half a)
{
    const __m512d magic = _mm512_set1_pd(0x1.8p52);
    __m512i bits = _mm512_sub_epi64(_mm512_castpd_si512(_mm512_add_pd(a, magic)),
                                    _mm512_castpd_si512(magic));
    _mm512_storeu_si512(sum, _mm512_add_epi64(_mm512_loadu_si512(sum), bits));
}

#endif
