/* Weights as fp32 in registers, for AVX-512: the words of lanes_avx2.h. One register holds
 * the sixteen lanes. */
#ifndef KERNELS_LANES_AVX512_H
#define KERNELS_LANES_AVX512_H

#include "kernels/scales.h"
#include "kernels/vector_avx512.h"

#define LANES_PARTS 1

typedef __m512i lanes_bits;

struct lanes_pair {
    vector even, odd;
};

VECTOR_INLINE struct lanes_pair lanes_pairs(__m512i pairs)
{
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000u);
    return (struct lanes_pair){_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)),
                               _mm512_castsi512_ps(_mm512_and_si512(pairs, upper))};
}

VECTOR_INLINE struct lanes_pair lanes_bf16(const uint8_t *w, const int part)
{
    return lanes_pairs(_mm512_loadu_si512(w));
}

VECTOR_INLINE struct lanes_pair lanes_f32(const uint8_t *w, const int part)
{
    const float *f = (const float *)w;
    return (struct lanes_pair){vector_load(f), vector_load(f + 16)};
}

/* One permute a register: an index counts by its low four bits, so the other nibble of a byte
 * need not be cleared. */
VECTOR_INLINE struct lanes_pair lanes_mxfp4(const uint8_t *w, uint8_t scale)
{
    const vector table = vector_load((const float *)scales_value[scale]);
    __m512i byte = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)w));
    return (struct lanes_pair){_mm512_permutexvar_ps(byte, table),
                               _mm512_permutexvar_ps(_mm512_srli_epi32(byte, 4), table)};
}

struct lanes_dictionary {
    __m512i upper;
};

VECTOR_INLINE struct lanes_dictionary lanes_dictionary_of(const uint8_t upper[16])
{
    __m128i one = _mm_loadu_si128((const __m128i *)upper);
    return (struct lanes_dictionary){_mm512_broadcast_i32x4(one)};
}

VECTOR_INLINE void lanes_pack12(__m512i ret[2], const uint8_t *row, const int pair,
                                const int part, struct lanes_dictionary d)
{
    __m512i lower = _mm512_loadu_si512(row + 64 * pair);
    __m512i code = _mm512_loadu_si512(row + 128);
    code = _mm512_and_si512(pair ? _mm512_srli_epi16(code, 4) : code, _mm512_set1_epi8(15));
    __m512i upper = _mm512_shuffle_epi8(d.upper, code);
    ret[0] = _mm512_unpacklo_epi8(lower, upper);
    ret[1] = _mm512_unpackhi_epi8(lower, upper);
}

VECTOR_INLINE void lanes_store(uint16_t *bf16, __m512i pairs)
{
    _mm512_storeu_si512(bf16, pairs);
}

VECTOR_INLINE __m128 lanes_avx512_quarter(vector v)
{
    __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), high);
    return _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
}

VECTOR_INLINE void lanes_sum4(float ret[4], vector lane[4][LANES_PARTS])
{
    __m128 a = lanes_avx512_quarter(lane[0][0]), b = lanes_avx512_quarter(lane[1][0]);
    __m128 c = lanes_avx512_quarter(lane[2][0]), d = lanes_avx512_quarter(lane[3][0]);
    __m128 ab = _mm_add_ps(_mm_movelh_ps(a, b), _mm_movehl_ps(b, a));
    __m128 cd = _mm_add_ps(_mm_movelh_ps(c, d), _mm_movehl_ps(d, c));
    _mm_storeu_ps(ret, _mm_add_ps(_mm_shuffle_ps(ab, cd, 0x88), _mm_shuffle_ps(ab, cd, 0xdd)));
}

#endif
