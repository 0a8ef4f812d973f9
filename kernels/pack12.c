/* Packing, checking and reading back the 12-bit form of bf16 rows: see the header. */
#include "kernels/pack12.h"

#include <errno.h>
#include <string.h>

#include "kernels/pack12_block.h"

/* The fifteen commonest upper bytes; equal counts by the lower value, so that one source gives
 * one block. */
static void choose(uint8_t upper[16], const uint8_t *w, size_t weights)
{
    size_t count[256] = {0};
    for (size_t i = 0; i < weights; i++)
        count[w[2 * i + 1]]++;
    memset(upper, 0, 16);
    for (size_t code = 0; code < PACK12_EXCEPTION; code++) {
        size_t most = 0;
        for (size_t byte = 1; byte < 256; byte++)
            if (count[byte] > count[most])
                most = byte;
        upper[code] = (uint8_t)most;
        count[most] = 0;
    }
}

static void invert(uint8_t code[256], const uint8_t upper[16])
{
    memset(code, PACK12_EXCEPTION, 256);
    for (size_t i = PACK12_EXCEPTION; i-- > 0;)
        code[upper[i]] = (uint8_t)i;
}

static size_t exceptions_of(const uint8_t code[256], const uint8_t *w, size_t weights)
{
    size_t n = 0;
    for (size_t i = 0; i < weights; i++)
        n += code[w[2 * i + 1]] == PACK12_EXCEPTION;
    return n;
}

static void put32(uint8_t *at, size_t value)
{
    uint32_t v = (uint32_t)value;
    memcpy(at, &v, sizeof v);
}

static void pack_row(uint8_t *unit, size_t step, const uint8_t *w, size_t cols,
                     const uint8_t code[256])
{
    for (size_t c = 0; c < cols; c++) {
        uint8_t *at = unit + c / PACK12_UNIT * step;
        size_t p = pack12_block_place(c % PACK12_UNIT);
        at[p] = w[2 * c];
        at[128 + p % 64] |= (uint8_t)(code[w[2 * c + 1]] << p / 64 * 4);
    }
}

size_t pack12_encode(void *out, size_t room, const void *w, size_t rows, size_t cols)
{
    uint8_t code[256];
    struct pack12_header h = {.rows = (uint32_t)rows, .cols = (uint32_t)cols};
    if (!rows || !cols || cols % PACK12_UNIT || rows > UINT32_MAX / 8 || cols >= 1 << 24)
        return 0;
    choose(h.upper, w, rows * cols);
    invert(code, h.upper);
    h.exceptions = (uint32_t)exceptions_of(code, w, rows * cols);
    struct pack12_block b = pack12_block_at(out, &h);
    if (b.bytes > room)
        return 0;
    memset(out, 0, b.bytes);
    memcpy(out, &h, sizeof h);
    uint8_t *units = (uint8_t *)out + PACK12_HEADER, *starts = units + b.strips * b.strip_bytes;
    uint8_t *next = starts + 4 * (b.strips * PACK12_STRIP + 1);
    size_t n = 0;
    for (size_t r = 0; r < rows; r++) {
        const uint8_t *row = (const uint8_t *)w + 2 * r * cols;
        pack_row(units + pack12_block_row(&b, r), PACK12_STRIP * PACK12_UNIT_ROW, row, cols,
                 code);
        put32(starts + 4 * r, n);
        for (size_t c = 0; c < cols; c++)
            if (code[row[2 * c + 1]] == PACK12_EXCEPTION)
                put32(next + 4 * n++, c << 8 | row[2 * c + 1]);
    }
    for (size_t r = rows; r <= b.strips * PACK12_STRIP; r++)
        put32(starts + 4 * r, n);
    return b.bytes;
}

static int exceptions_sound(const struct pack12_block *b, size_t cols, size_t row)
{
    size_t first = pack12_block_start(b, row), end = pack12_block_start(b, row + 1);
    if (end < first || end > b->header.exceptions)
        return 0;
    for (size_t i = first; i < end; i++) {
        size_t c = pack12_block_exception(b, i) >> 8;
        if (c >= cols || (i > first && c <= pack12_block_exception(b, i - 1) >> 8))
            return 0;
    }
    return 1;
}

int pack12_check(const void *block, size_t bytes, size_t rows, size_t cols)
{
    struct pack12_header h;
    if (bytes < sizeof h)
        return -EBADMSG;
    memcpy(&h, block, sizeof h);
    if (!rows || !cols || h.rows != rows || h.cols != cols || cols % PACK12_UNIT)
        return -EBADMSG;
    struct pack12_block b = pack12_block_at(block, &h);
    if (b.bytes > bytes || pack12_block_start(&b, 0) != 0 ||
        pack12_block_start(&b, b.strips * PACK12_STRIP) != h.exceptions)
        return -EBADMSG;
    for (size_t r = 0; r < b.strips * PACK12_STRIP; r++)
        if (!exceptions_sound(&b, cols, r))
            return -EBADMSG;
    return 0;
}

void pack12_row(uint16_t *w, const void *block, size_t row)
{
    struct pack12_block b = pack12_block_open(block);
    size_t next = pack12_block_start(&b, row);
    for (size_t unit = 0; unit < b.header.cols / PACK12_UNIT; unit++)
        pack12_block_unit(w + unit * PACK12_UNIT, &b, row, unit, &next);
}
