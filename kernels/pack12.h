/*
 * bf16 rows in 12 bits a weight, without loss.
 *
 * The lower byte of a bf16 weight (the last bit of the exponent and the mantissa) is noise and
 * is kept as it is. The upper byte (sign and seven bits of the exponent) takes few values in
 * one block of a trained matrix: the fifteen commonest get a 4-bit code, and a weight with
 * another one is an *exception*, code 15, found in a list by row and column. A kernel looks a
 * whole register of codes up with one byte shuffle, interleaves the two bytes, and has bf16.
 *
 * A block is one piece of memory with no pointers, little endian, any alignment:
 *
 *     0          upper bytes by code [16] (the last is 0); u32 rows, columns, exceptions, 0;
 *                32 bytes of zero
 *     64         strips of four rows; in a strip, for each unit of 128 columns, four rows of
 *                192 bytes: lower bytes of groups 0 and 1, of groups 2 and 3, codes
 *     starts     u32 [rows of all strips + 1]: where the exceptions of each row begin
 *     exceptions u32: column << 8 | upper byte, increasing within a row
 *
 * Rows beyond the last are zero. In 64 lower bytes of two groups of 32, 16 bytes for each
 * quarter q: elements 8q..8q+7 of the first group, then of the second. So an interleave within
 * 128 bits, which is what AVX2 and AVX-512 have, gives (even, odd) pairs in lane order. Byte b
 * of the codes has the code of byte b of the first two groups in its low nibble, of the last
 * two in its high.
 */
#ifndef KERNELS_PACK12_H
#define KERNELS_PACK12_H

#include <stddef.h>
#include <stdint.h>

#define PACK12_HEADER    64
#define PACK12_STRIP     4   /* rows */
#define PACK12_UNIT      128 /* columns */
#define PACK12_UNIT_ROW  192 /* bytes of one row of a unit */
#define PACK12_EXCEPTION 15

struct pack12_header {
    uint8_t upper[16];
    uint32_t rows, cols, exceptions, zero;
    uint8_t rest[32];
};

/* Packs rows x cols weights, gap-free, into `room` bytes at out. Gives the bytes used, or 0
 * when they would not fit or cols is no multiple of 128: such a block stays raw. With room for
 * less than the 2 * rows * cols bytes of the source, a block that would not shrink is refused.
 */
size_t pack12_encode(void *out, size_t room, const void *w, size_t rows, size_t cols);

/* 0, or -EBADMSG when `bytes` bytes at block are not a sound block of this shape. The kernels
 * read nothing outside of a sound block. */
int pack12_check(const void *block, size_t bytes, size_t rows, size_t cols);

/* The weights of one row of a sound block, as they were. */
void pack12_row(uint16_t *w, const void *block, size_t row);

#endif
