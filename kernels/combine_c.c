/* Weighted sums of rows, in increasing row per column: the definition. */
#include <math.h>
#include <string.h>

#include "kernels/variants.h"

static void add_f32(float *y, const uint8_t *row, float x, size_t cols)
{
    const float *w = (const float *)row;
    for (size_t i = 0; i < cols; i++)
        y[i] = fmaf(x, w[i], y[i]);
}

static void add_bf16(float *y, const uint8_t *row, float x, size_t cols)
{
    for (size_t i = 0; i < cols; i++) {
        uint16_t half;
        memcpy(&half, row + i * sizeof half, sizeof half);
        uint32_t bits = (uint32_t)half << 16;
        float w;
        memcpy(&w, &bits, sizeof w);
        y[i] = fmaf(x, w, y[i]);
    }
}

static void combine(const struct combination *c,
                    void (*add)(float *y, const uint8_t *row, float x, size_t cols))
{
    for (size_t t = 0; t < c->vectors; t++) {
        float *y = c->y + t * c->y_stride;
        const float *x = c->x + t * c->x_stride;
        if (c->first)
            memset(y, 0, c->cols * sizeof *y);
        for (size_t r = 0; r < c->rows; r++)
            add(y, (const uint8_t *)c->w + r * c->w_stride, x[r], c->cols);
    }
}

void combine_c_bf16(const struct combination *c)
{
    combine(c, add_bf16);
}

void combine_c_f32(const struct combination *c)
{
    combine(c, add_f32);
}
