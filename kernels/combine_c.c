/* Weighted sums of rows, in increasing row per column: the definition. */
#include <math.h>
#include <string.h>

#include "kernels/variants.h"

static void begin(const struct combination *c)
{
    if (c->first)
        memset(c->y, 0, c->cols * sizeof *c->y);
}

void combine_c_bf16(const struct combination *c)
{
    begin(c);
    for (size_t r = 0; r < c->rows; r++) {
        const uint8_t *row = (const uint8_t *)c->w + r * c->w_stride;
        for (size_t i = 0; i < c->cols; i++) {
            uint16_t half;
            memcpy(&half, row + i * sizeof half, sizeof half);
            uint32_t bits = (uint32_t)half << 16;
            float w;
            memcpy(&w, &bits, sizeof w);
            c->y[i] = fmaf(c->x[r], w, c->y[i]);
        }
    }
}

void combine_c_f32(const struct combination *c)
{
    begin(c);
    for (size_t r = 0; r < c->rows; r++) {
        const float *w = (const void *)((const uint8_t *)c->w + r * c->w_stride);
        for (size_t i = 0; i < c->cols; i++)
            c->y[i] = fmaf(c->x[r], w[i], c->y[i]);
    }
}
