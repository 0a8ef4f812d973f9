/*
 * MXFP4 in AVX2 registers, two rows side by side.
 *
 * A byte shuffle looks sixteen nibbles up at once, but an fp32 needs two bytes of the table; so
 * nibbles become bf16 by two lookups and an interleave, and fp32 by a shift and a mask. The
 * table holds the values under the row's scale (scales.h), which saves a multiplication for
 * each eight weights. Interleaves work within 128 bits: one row lies in each half of a
 * register, and a sum's register q holds lanes 4q..4q+3 of the one row and of the other.
 */
#ifndef KERNELS_PAIR_AVX2_H
#define KERNELS_PAIR_AVX2_H

#include "kernels/lanes_avx2.h"
#include "kernels/scales.h"

#define PAIR_PARTS 4

struct pair_group {
    vector even[PAIR_PARTS], odd[PAIR_PARTS];
};

VECTOR_INLINE __m256i pair_avx2_join(const uint8_t *a, const uint8_t *b)
{
    __m256i low = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)a));
    return _mm256_inserti128_si256(low, _mm_loadu_si128((const __m128i *)b), 1);
}

/* Two groups of 16 bytes under two scales. */
VECTOR_INLINE struct pair_group pair_avx2_group(const uint8_t *a, const uint8_t *b,
                                                uint8_t scale_a, uint8_t scale_b)
{
    const struct scales_bytes *ta = &scales_table[scale_a], *tb = &scales_table[scale_b];
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i both = pair_avx2_join(a, b);
    __m256i low = _mm256_and_si256(both, nibble);
    __m256i high = _mm256_and_si256(_mm256_srli_epi16(both, 4), nibble);
    __m256i upper = pair_avx2_join(ta->upper, tb->upper);
    __m256i lower = pair_avx2_join(ta->lower, tb->lower);
    struct pair_group g;
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        __m256i n = h ? _mm256_unpackhi_epi8(low, high) : _mm256_unpacklo_epi8(low, high);
        __m256i u = _mm256_shuffle_epi8(upper, n), l = _mm256_shuffle_epi8(lower, n);
        __m256i first = _mm256_unpacklo_epi8(l, u), second = _mm256_unpackhi_epi8(l, u);
        g.even[2 * h] = lanes_avx2_even(first);
        g.odd[2 * h] = lanes_avx2_odd(first);
        g.even[2 * h + 1] = lanes_avx2_even(second);
        g.odd[2 * h + 1] = lanes_avx2_odd(second);
    }
    return g;
}

/* Four values of x for both halves. */
VECTOR_INLINE vector pair_avx2_both(const float *x)
{
    return _mm256_broadcast_ps((const __m128 *)x);
}

/* Four lanes of each of the two rows. */
VECTOR_INLINE vector pair_avx2_quarter(const vector sum[PAIR_PARTS])
{
    return _mm256_add_ps(_mm256_add_ps(sum[0], sum[2]), _mm256_add_ps(sum[1], sum[3]));
}

#endif
