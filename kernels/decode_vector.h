/* Rows of weights into the panel's lane order: see panel_vector.h. */
#ifndef KERNELS_DECODE_VECTOR_H
#define KERNELS_DECODE_VECTOR_H

#include "kernels/pack12_block.h"
#include "kernels/panel_vector.h"

VECTOR_INLINE void decode_vector_put(float *out, struct lanes_pair w)
{
    vector_store(out, w.even);
    vector_store(out + 16, w.odd);
}

VECTOR_INLINE void decode_vector_fetch(const uint8_t *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(at + i);
}

VECTOR_INLINE void decode_vector_fetch_mxfp4(const struct product *p, size_t row, size_t from,
                                             size_t n)
{
    decode_vector_fetch((const uint8_t *)p->w + row * p->w_stride + from / 2, n / 2);
}

/* The rows of a strip lie together: each asks for its quarter of what they take. */
VECTOR_INLINE void decode_vector_fetch_pack12(const struct product *p, size_t row, size_t from,
                                              size_t n)
{
    struct pack12_header h;
    __builtin_memcpy(&h, p->w, sizeof h);
    const size_t unit = PACK12_STRIP * PACK12_UNIT_ROW, r = p->first + row;
    const size_t strip = h.cols / PACK12_UNIT * unit;
    const uint8_t *at = (const uint8_t *)p->w + PACK12_HEADER + r / PACK12_STRIP * strip +
                        from / PACK12_UNIT * unit;
    const size_t part = n / PACK12_UNIT * unit / PACK12_STRIP;
    decode_vector_fetch(at + r % PACK12_STRIP * part, part);
}

/* The first exception of a row at or behind a column. */
VECTOR_INLINE size_t decode_vector_exception(const struct pack12_block *b, size_t row,
                                             size_t col)
{
    size_t low = pack12_block_start(b, row), high = pack12_block_start(b, row + 1);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (pack12_block_exception(b, middle) >> 8 < col)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

VECTOR_INLINE void decode_vector_pack12(float *out, const struct product *p, size_t row,
                                        size_t from, size_t n)
{
    const struct pack12_block b = pack12_block_open(p->w);
    const struct lanes_dictionary d = lanes_dictionary_of(b.header.upper);
    const size_t r = p->first + row;
    const uint8_t *at =
        b.units + pack12_block_row(&b, r) + from / PACK12_UNIT * PACK12_STRIP * PACK12_UNIT_ROW;
    for (size_t c = 0; c < n; c += PACK12_UNIT, at += PACK12_STRIP * PACK12_UNIT_ROW)
#pragma GCC unroll 2
        for (int pair = 0; pair < 2; pair++)
#pragma GCC unroll 2
            for (int j = 0; j < LANES_PARTS; j++) {
                float *to = out + c + 64 * pair + j * VECTOR_LANES;
                lanes_bits bits[2];
                lanes_pack12(bits, at, pair, j, d);
                decode_vector_put(to, lanes_pairs(bits[0]));
                decode_vector_put(to + KERNELS_GROUP, lanes_pairs(bits[1]));
            }
    const size_t end = pack12_block_start(&b, r + 1);
    for (size_t i = decode_vector_exception(&b, r, from); i < end; i++) {
        uint32_t e = pack12_block_exception(&b, i), bits;
        size_t c = (e >> 8) - from;
        if (c >= n)
            break;
        float *value = &out[c / 32 * 32 + (c & 1) * 16 + c % 32 / 2];
        __builtin_memcpy(&bits, value, sizeof bits);
        bits = (bits & 0x00ffffffu) | (e & 255) << 24;
        __builtin_memcpy(value, &bits, sizeof bits);
    }
}

#endif
