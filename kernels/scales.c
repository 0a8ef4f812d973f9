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
#define FACTOR(s) ((s) ? (uint32_t)(s) << 23 : (uint32_t)1 << 22)

#define FOUR(EACH, s)    EACH(s), EACH(s + 1), EACH(s + 2), EACH(s + 3)
#define SIXTEEN(EACH, s) FOUR(EACH, s), FOUR(EACH, s + 4), FOUR(EACH, s + 8), FOUR(EACH, s + 12)
#define SIXTY_FOUR(EACH, s)                                                                    \
    SIXTEEN(EACH, s), SIXTEEN(EACH, s + 16), SIXTEEN(EACH, s + 32), SIXTEEN(EACH, s + 48)
#define ALL(EACH)                                                                              \
    SIXTY_FOUR(EACH, 0), SIXTY_FOUR(EACH, 64), SIXTY_FOUR(EACH, 128), SIXTY_FOUR(EACH, 192)

const uint32_t scales_factor[256] = {ALL(FACTOR)};
const struct scales_bytes scales_table[256] = {ALL(BYTES)};

bool scales_bad(const struct product *p, size_t row, size_t rows)
{
    for (size_t r = row; r < row + rows; r++)
        if (memchr(p->scale + r * p->scale_stride, 255, p->cols / KERNELS_GROUP))
            return true;
    return false;
}
