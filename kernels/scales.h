/* What is known of an MXFP4 scale byte s before any weight: constants. Private to kernels/. */
#ifndef KERNELS_SCALES_H
#define KERNELS_SCALES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct product;

/* The sixteen values of a nibble times 2^(s - 127) as fp32, by nibble: exact, infinite beyond
 * the range. Of 255 nothing is used: such a scale is refused first. */
extern const uint32_t scales_value[256][16];

/* The sixteen values of a nibble times 2^(s - 127) as bf16, which holds them exactly (infinite
 * beyond its range): their upper bytes and their lower bytes, by nibble. */
struct scales_bytes {
    uint8_t upper[16], lower[16];
};
extern const struct scales_bytes scales_table[256];

/* Whether a scale byte of rows [row, row + rows) is 255. */
bool scales_bad(const struct product *p, size_t row, size_t rows);

#endif
