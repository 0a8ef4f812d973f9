/*
 * Rows times vectors: the definition (docs/numerics.md, "Dot products").
 *
 * Element i of a row belongs to lane (i >> 1) mod 16 and is added to it by one fused
 * multiply-add, in increasing i; the lanes are added as a tree. The vector lies in lane order:
 * of every 32 elements the 16 even ones, then the 16 odd ones. A row whose length is no
 * multiple of 32 fills the lanes it has; the missing elements are not multiplied as zeros,
 * because that could turn a lane of -0 into +0.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "kernels/variants.h"

void product_c_lane_order(float *out, const float *x, size_t n)
{
    size_t i = 0;
    memset(out, 0, kernels_padded(n) * sizeof *out);
    for (; i < n; i++)
        out[i / 32 * 32 + (i & 1) * 16 + (i >> 1) % 16] = x[i];
}

static float lanes_sum(float lane[KERNELS_LANES])
{
    for (size_t width = KERNELS_LANES / 2; width; width /= 2)
        for (size_t j = 0; j < width; j++)
            lane[j] += lane[j + width];
    return lane[0];
}

/* One row of fp32 values in natural order with one vector in lane order, 32 at a time. */
static void dot_group(float lane[KERNELS_LANES], const float *w, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t j = i >> 1;
        lane[j] = fmaf(w[i], x[(i & 1) * 16 + j], lane[j]);
    }
}

static float bf16_value(const uint16_t *w)
{
    uint16_t half;
    memcpy(&half, w, sizeof half);
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float bf16_dot(const uint16_t *w, const float *x, size_t cols)
{
    float lane[KERNELS_LANES] = {0}, group[KERNELS_GROUP];
    for (size_t c = 0; c < cols; c += KERNELS_GROUP) {
        size_t n = cols - c < KERNELS_GROUP ? cols - c : KERNELS_GROUP;
        for (size_t i = 0; i < n; i++)
            group[i] = bf16_value(w + c + i);
        dot_group(lane, group, x + c, n);
    }
    return lanes_sum(lane);
}

void product_c_bf16(const struct product *p)
{
    for (size_t r = 0; r < p->rows; r++) {
        const uint16_t *w = (const void *)((const uint8_t *)p->w + r * p->w_stride);
        for (size_t t = 0; t < p->vectors; t++)
            p->y[t * p->y_stride + r] = bf16_dot(w, p->x + t * p->x_stride, p->cols);
    }
}

/* The exact value of one nibble under a scale byte below 255. */
static float mxfp4_value(unsigned nibble, uint8_t scale)
{
    static const float value[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                    -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
    uint32_t bits = scale ? (uint32_t)scale << 23 : (uint32_t)1 << 22; /* 2^-127 is subnormal */
    float factor;
    memcpy(&factor, &bits, sizeof factor);
    return value[nibble] * factor;
}

static float mxfp4_dot(const uint8_t *w, const uint8_t *scale, const float *x, size_t cols)
{
    float lane[KERNELS_LANES] = {0}, group[KERNELS_GROUP];
    for (size_t c = 0; c < cols; c += KERNELS_GROUP) {
        const uint8_t *bytes = w + c / 2;
        for (size_t i = 0; i < KERNELS_GROUP; i++)
            group[i] = mxfp4_value(bytes[i / 2] >> (i & 1) * 4 & 15, scale[c / KERNELS_GROUP]);
        dot_group(lane, group, x + c, KERNELS_GROUP);
    }
    return lanes_sum(lane);
}

int product_c_mxfp4(const struct product *p)
{
    for (size_t r = 0; r < p->rows; r++) {
        const uint8_t *w = (const uint8_t *)p->w + r * p->w_stride;
        const uint8_t *scale = p->scale + r * p->scale_stride;
        if (memchr(scale, 255, p->cols / KERNELS_GROUP))
            return -EDOM;
        for (size_t t = 0; t < p->vectors; t++)
            p->y[t * p->y_stride + r] = mxfp4_dot(w, scale, p->x + t * p->x_stride, p->cols);
    }
    return 0;
}

static float f32_dot(const float *w, const float *x, size_t cols)
{
    float lane[KERNELS_LANES] = {0};
    for (size_t i = 0; i < cols; i++) {
        size_t j = (i >> 1) % 16, at = i / 32 * 32 + (i & 1) * 16 + j;
        lane[j] = fmaf(w[at], x[at], lane[j]);
    }
    return lanes_sum(lane);
}

void product_c_f32(const struct product *p)
{
    for (size_t r = 0; r < p->rows; r++) {
        const float *w = (const void *)((const uint8_t *)p->w + r * p->w_stride);
        for (size_t t = 0; t < p->vectors; t++)
            p->y[t * p->y_stride + r] = f32_dot(w, p->x + t * p->x_stride, p->cols);
    }
}
