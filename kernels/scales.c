/* MXFP4 scales as tables, written out by the preprocessor: see the header. */
#include "kernels/scales.h"

#include <string.h>

#include "kernels/kernels.h"

/* (1 + half / 2) 2^(e - 127) as bf16, for e >= -1 */
#define BITS(e, half)                                                                          \
    ((e) > 254 ? 0x7f80 : (e) > 0 ? (e) << 7 | (half) << 6 : (2 + (half)) << ((e) + 5))

#define UPPER(e, half) (BITS(e, half) >> 8)
#define LOWER(e, half) (BITS(e, half) & 255)

/* The eight magnitudes 0, 1/2, 1, 3/2, 2, 3, 4, 6 under scale s, through PART. */
#define EIGHT(PART, s, sign)                                                                   \
    sign, PART(s - 1, 0) | sign, PART(s, 0) | sign, PART(s, 1) | sign, PART(s + 1, 0) | sign,  \
        PART(s + 1, 1) | sign, PART(s + 2, 0) | sign, PART(s + 2, 1) | sign

#define BYTES(s)                                                                               \
    {                                                                                          \
        {EIGHT(UPPER, s, 0), EIGHT(UPPER, s, 0x80)},                                           \
        {                                                                                      \
            EIGHT(LOWER, s, 0), EIGHT(LOWER, s, 0)                                             \
        }                                                                                      \
    }
#define WORD(e, half) ((uint32_t)BITS(e, half) << 16)
#define VALUES(s)                                                                              \
    {                                                                                          \
        EIGHT(WORD, s, 0), EIGHT(WORD, s, 0x80000000u)                                         \
    }

#define FOUR(EACH, s)    EACH(s), EACH(s + 1), EACH(s + 2), EACH(s + 3)
#define SIXTEEN(EACH, s) FOUR(EACH, s), FOUR(EACH, s + 4), FOUR(EACH, s + 8), FOUR(EACH, s + 12)
#define SIXTY_FOUR(EACH, s)                                                                    \
    SIXTEEN(EACH, s), SIXTEEN(EACH, s + 16), SIXTEEN(EACH, s + 32), SIXTEEN(EACH, s + 48)
#define ALL(EACH)                                                                              \
    SIXTY_FOUR(EACH, 0), SIXTY_FOUR(EACH, 64), SIXTY_FOUR(EACH, 128), SIXTY_FOUR(EACH, 192)

const uint32_t scales_value[256][16] = {ALL(VALUES)};
const struct scales_bytes scales_table[256] = {ALL(BYTES)};

/* Whether one of eight bytes is 255: one of their complements is 0 and lends from its top bit.
 */
static uint64_t eight_bad(const uint8_t *scale)
{
    uint64_t v;
    memcpy(&v, scale, sizeof v);
    return (~v - 0x0101010101010101u) & v & 0x8080808080808080u;
}

/* A band's rows of w2 have eight scales each, too few to call for. */
static bool row_bad(const uint8_t *scale, size_t n)
{
    uint64_t bad = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        bad |= eight_bad(scale + i);
    for (; i < n; i++)
        bad |= scale[i] == 255;
    return bad != 0;
}

bool scales_bad(const struct product *p, size_t row, size_t rows)
{
    const uint8_t *scale = p->scale + row * p->scale_stride;
    const size_t n = p->cols / KERNELS_GROUP;
    if (p->scale_stride == n) /* no gaps: one look at all of them */
        return memchr(scale, 255, rows * n) != NULL;
    bool bad = false;
    for (size_t r = 0; r < rows; r++)
        bad |= row_bad(scale + r * p->scale_stride, n);
    return bad;
}
