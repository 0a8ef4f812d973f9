/*
 * AVX-512 on a machine without it: included before each AVX-512 file of the emulated
 * kernelcheck. SIMDe gives every intrinsic its native name; SLEEF's functions of sixteen lanes
 * are made of the ones of eight, which have the same bits.
 */
#ifndef TESTS_KERNELS_EMULATE_AVX512_H
#define TESTS_KERNELS_EMULATE_AVX512_H

#include <immintrin.h>
#include <sleef.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

/* The ones SIMDe does not have. */
#undef _mm512_maskz_loadu_ps
#define _mm512_maskz_loadu_ps emulate_maskz_loadu_ps
#undef _mm512_mask_storeu_ps
#define _mm512_mask_storeu_ps emulate_mask_storeu_ps
#undef _mm512_cvtepu8_epi32
#define _mm512_cvtepu8_epi32 emulate_cvtepu8_epi32
#undef _mm512_cvtepu16_epi32
#define _mm512_cvtepu16_epi32 emulate_cvtepu16_epi32
#undef _mm512_cvtps_pd
#define _mm512_cvtps_pd emulate_cvtps_pd

static inline __m512d emulate_cvtps_pd(__m256 v)
{
    return _mm512_insertf64x4(
        _mm512_castpd256_pd512(_mm256_cvtps_pd(_mm256_castps256_ps128(v))),
        _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)), 1);
}

static inline __m512i emulate_cvtepu8_epi32(__m128i v)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_cvtepu8_epi32(v)),
                              _mm256_cvtepu8_epi32(_mm_srli_si128(v, 8)), 1);
}

static inline __m512i emulate_cvtepu16_epi32(__m256i v)
{
    return _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(v))),
        _mm256_cvtepu16_epi32(_mm256_extracti128_si256(v, 1)), 1);
}

static inline __m512 emulate_maskz_loadu_ps(__mmask16 some, const float *p)
{
    float all[16] = {0};
    for (int i = 0; i < 16; i++)
        if (some >> i & 1)
            all[i] = p[i];
    return _mm512_loadu_ps(all);
}

static inline void emulate_mask_storeu_ps(float *p, __mmask16 some, __m512 v)
{
    float all[16];
    _mm512_storeu_ps(all, v);
    for (int i = 0; i < 16; i++)
        if (some >> i & 1)
            p[i] = all[i];
}

/* A function of eight lanes on each half. */
static inline __m512 emulate_halves(__m256 (*of)(__m256), __m512 x)
{
    float lane[16];
    _mm512_storeu_ps(lane, x);
    _mm256_storeu_ps(lane, of(_mm256_loadu_ps(lane)));
    _mm256_storeu_ps(lane + 8, of(_mm256_loadu_ps(lane + 8)));
    return _mm512_loadu_ps(lane);
}

static inline __m512 Sleef_finz_expf16_u10avx512f(__m512 x)
{
    return emulate_halves(Sleef_finz_expf8_u10avx2, x);
}

static inline __m512 Sleef_finz_tanhf16_u10avx512f(__m512 x)
{
    return emulate_halves(Sleef_finz_tanhf8_u10avx2, x);
}

#endif
