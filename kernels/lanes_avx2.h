/*
 * Weights as fp32 in registers, for AVX2: 32 of a row at a time, by lane, the even elements and
 * the odd ones. Two registers of eight hold the sixteen lanes.
 */
#ifndef KERNELS_LANES_AVX2_H
#define KERNELS_LANES_AVX2_H

#include "kernels/vector_avx2.h"

#define LANES_PARTS 2

typedef __m256i lanes_bits;

/* For one register of lanes. */
struct lanes_pair {
    vector even, odd;
};

/* Eight dwords of two bf16 numbers, the even one low. */
VECTOR_INLINE vector lanes_avx2_even(__m256i pairs)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
}

VECTOR_INLINE vector lanes_avx2_odd(__m256i pairs)
{
    return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32((int)0xffff0000u)));
}

/* Dwords of two bf16 numbers, widened. */
VECTOR_INLINE struct lanes_pair lanes_pairs(__m256i pairs)
{
    return (struct lanes_pair){lanes_avx2_even(pairs), lanes_avx2_odd(pairs)};
}

/* Register `part` of a group of 32 at w. */
VECTOR_INLINE struct lanes_pair lanes_bf16(const uint8_t *w, const int part)
{
    return lanes_pairs(_mm256_loadu_si256((const __m256i *)(w + 32 * part)));
}

VECTOR_INLINE struct lanes_pair lanes_f32(const uint8_t *w, const int part)
{
    const float *f = (const float *)w + 8 * part;
    return (struct lanes_pair){vector_load(f), vector_load(f + 16)};
}

/* The upper bytes of pack12.h's codes: looked up in each half of a register. */
struct lanes_dictionary {
    __m256i upper;
};

VECTOR_INLINE struct lanes_dictionary lanes_dictionary_of(const uint8_t upper[16])
{
    __m128i one = _mm_loadu_si128((const __m128i *)upper);
    return (struct lanes_dictionary){_mm256_broadcastsi128_si256(one)};
}

/* Of a row of a unit, exceptions not heeded, register `part` of the groups 2 pair and
 * 2 pair + 1: two bf16 numbers a dword. */
VECTOR_INLINE void lanes_pack12(__m256i ret[2], const uint8_t *row, const int pair,
                                const int part, struct lanes_dictionary d)
{
    __m256i lower = _mm256_loadu_si256((const __m256i *)(row + 64 * pair + 32 * part));
    __m256i code = _mm256_loadu_si256((const __m256i *)(row + 128 + 32 * part));
    code = _mm256_and_si256(pair ? _mm256_srli_epi16(code, 4) : code, _mm256_set1_epi8(15));
    __m256i upper = _mm256_shuffle_epi8(d.upper, code);
    ret[0] = _mm256_unpacklo_epi8(lower, upper);
    ret[1] = _mm256_unpackhi_epi8(lower, upper);
}

VECTOR_INLINE void lanes_store(uint16_t *bf16, __m256i pairs)
{
    _mm256_storeu_si256((__m256i *)bf16, pairs);
}

/* The sixteen lanes of four dot products added as trees. */
VECTOR_INLINE __m128 lanes_avx2_four(__m128 a, __m128 b, __m128 c, __m128 d)
{
    __m128 ab = _mm_add_ps(_mm_movelh_ps(a, b), _mm_movehl_ps(b, a));
    __m128 cd = _mm_add_ps(_mm_movelh_ps(c, d), _mm_movehl_ps(d, c));
    return _mm_add_ps(_mm_shuffle_ps(ab, cd, 0x88), _mm_shuffle_ps(ab, cd, 0xdd));
}

VECTOR_INLINE __m128 lanes_avx2_halves(vector low, vector high)
{
    vector eight = _mm256_add_ps(low, high);
    return _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
}

VECTOR_INLINE void lanes_sum4(float ret[4], vector lane[4][LANES_PARTS])
{
    _mm_storeu_ps(ret, lanes_avx2_four(lanes_avx2_halves(lane[0][0], lane[0][1]),
                                       lanes_avx2_halves(lane[1][0], lane[1][1]),
                                       lanes_avx2_halves(lane[2][0], lane[2][1]),
                                       lanes_avx2_halves(lane[3][0], lane[3][1])));
}

#endif
