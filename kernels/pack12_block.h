/* Where the parts of a 12-bit block are. Private to kernels/; the layout is in pack12.h. */
#ifndef KERNELS_PACK12_BLOCK_H
#define KERNELS_PACK12_BLOCK_H

#include <string.h>

#include "kernels/pack12.h"

struct pack12_block {
    struct pack12_header header;
    const uint8_t *units, *starts, *exceptions;
    size_t strips, strip_bytes; /* one strip */
    size_t bytes;               /* of the whole block */
};

static inline struct pack12_block pack12_block_at(const void *block,
                                                  const struct pack12_header *h)
{
    struct pack12_block b = {.header = *h};
    b.strips = ((size_t)h->rows + PACK12_STRIP - 1) / PACK12_STRIP;
    b.strip_bytes = (size_t)h->cols / PACK12_UNIT * PACK12_STRIP * PACK12_UNIT_ROW;
    b.units = (const uint8_t *)block + PACK12_HEADER;
    b.starts = b.units + b.strips * b.strip_bytes;
    b.exceptions = b.starts + 4 * (b.strips * PACK12_STRIP + 1);
    b.bytes = (size_t)(b.exceptions - (const uint8_t *)block) + 4 * (size_t)h->exceptions;
    return b;
}

static inline struct pack12_block pack12_block_open(const void *block)
{
    struct pack12_header h;
    memcpy(&h, block, sizeof h);
    return pack12_block_at(block, &h);
}

/* Bytes from the units' beginning to the first unit of a row. */
static inline size_t pack12_block_row(const struct pack12_block *b, size_t row)
{
    return row / PACK12_STRIP * b->strip_bytes + row % PACK12_STRIP * PACK12_UNIT_ROW;
}

static inline uint32_t pack12_block_start(const struct pack12_block *b, size_t row)
{
    uint32_t v;
    memcpy(&v, b->starts + 4 * row, sizeof v);
    return v;
}

/* column << 8 | upper byte */
static inline uint32_t pack12_block_exception(const struct pack12_block *b, size_t i)
{
    uint32_t v;
    memcpy(&v, b->exceptions + 4 * i, sizeof v);
    return v;
}

/* Where element c of a unit has its lower byte; its code is at the same place modulo 64. */
static inline size_t pack12_block_place(size_t c)
{
    size_t group = c / 32, quarter = c % 32 / 8;
    return group / 2 * 64 + quarter * 16 + group % 2 * 8 + c % 8;
}

/* The weights of one row of one unit. `*next` is the row's first exception that is not before
 * this unit, and moves behind it. */
static inline void pack12_block_unit(uint16_t w[PACK12_UNIT], const struct pack12_block *b,
                                     size_t row, size_t unit, size_t *next)
{
    const uint8_t *at =
        b->units + pack12_block_row(b, row) + unit * PACK12_STRIP * PACK12_UNIT_ROW;
    for (size_t c = 0; c < PACK12_UNIT; c++) {
        size_t p = pack12_block_place(c);
        unsigned code = at[128 + p % 64] >> p / 64 * 4 & 15;
        w[c] = (uint16_t)(b->header.upper[code] << 8 | at[p]);
    }
    for (size_t end = pack12_block_start(b, row + 1); *next < end; ++*next) {
        uint32_t e = pack12_block_exception(b, *next);
        if ((e >> 8) / PACK12_UNIT != unit)
            break;
        size_t c = (e >> 8) % PACK12_UNIT;
        w[c] = (uint16_t)((e & 255) << 8 | (w[c] & 255));
    }
}

#endif
