/*
 * Checksums of expert tiles: XXH3-128 in its canonical (big-endian) form, over many gigabytes a
 * second. On x86-64 this needs AVX2, as everything that computes does.
 */
#ifndef PROTO_SUM_H
#define PROTO_SUM_H

#include <stddef.h>
#include <stdint.h>

#define SUM_BYTES 16

void sum_of(const void *bytes, size_t length, uint8_t ret_sum[SUM_BYTES]);

/* The same over pieces laid end to end. */
struct sum_piece {
    const void *bytes;
    size_t length;
};
void sum_of_pieces(const struct sum_piece *piece, size_t pieces, uint8_t ret_sum[SUM_BYTES]);

#endif
