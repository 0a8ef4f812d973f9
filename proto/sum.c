/* The header-only form of xxHash: several times as fast as the shared library's. */
#include "proto/sum.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static void give(XXH128_hash_t hash, uint8_t ret_sum[SUM_BYTES])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    memcpy(ret_sum, canonical.digest, SUM_BYTES);
}

void sum_of(const void *bytes, size_t length, uint8_t ret_sum[SUM_BYTES])
{
    give(XXH3_128bits(bytes, length), ret_sum);
}

void sum_of_pieces(const struct sum_piece *piece, size_t pieces, uint8_t ret_sum[SUM_BYTES])
{
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    for (size_t i = 0; i < pieces; i++)
        XXH3_128bits_update(&state, piece[i].bytes, piece[i].length);
    give(XXH3_128bits_digest(&state), ret_sum);
}
