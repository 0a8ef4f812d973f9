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

#include "kernels/pack12_block.h"
#include "kernels/variants.h"

#define HALF (KERNELS_GROUP / 2)

void product_c_lane_order(float *out, const float *x, size_t n)
{
    size_t full = n / KERNELS_GROUP * KERNELS_GROUP;
    memset(out + full, 0, (kernels_padded(n) - full) * sizeof *out);
    for (size_t g = 0; g < full; g += KERNELS_GROUP)
        for (size_t j = 0; j < HALF; j++) {
            out[g + j] = x[g + 2 * j];
            out[g + HALF + j] = x[g + 2 * j + 1];
        }
    for (size_t i = full; i < n; i++)
        out[full + (i & 1) * HALF + (i - full) / 2] = x[i];
}

static float lanes_sum(float lane[KERNELS_LANES])
{
    for (size_t width = KERNELS_LANES / 2; width; width /= 2)
        for (size_t j = 0; j < width; j++)
            lane[j] += lane[j + width];
    return lane[0];
}

/* One group of n weights in lane order with one vector. */
static void lanes_add(float lane[KERNELS_LANES], const float *w, const float *x, size_t n)
{
    if (n == KERNELS_GROUP) {
        for (size_t j = 0; j < HALF; j++)
            lane[j] = fmaf(w[HALF + j], x[HALF + j], fmaf(w[j], x[j], lane[j]));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        size_t j = i / 2, at = (i & 1) * HALF + j;
        lane[j] = fmaf(w[at], x[at], lane[j]);
    }
}

static float f32_dot(const float *w, const float *x, size_t cols)
{
    float lane[KERNELS_LANES] = {0};
    for (size_t c = 0; c < cols; c += KERNELS_GROUP)
        lanes_add(lane, w + c, x + c, cols - c < KERNELS_GROUP ? cols - c : KERNELS_GROUP);
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

static float bf16_value(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* n weights of a group, at any address, into lane order. */
static void bf16_group(float *group, const void *w, size_t n)
{
    uint16_t half[KERNELS_GROUP] = {0};
    memcpy(half, w, n * sizeof *half);
    for (size_t j = 0; j < HALF; j++) {
        group[j] = bf16_value(half[2 * j]);
        group[HALF + j] = bf16_value(half[2 * j + 1]);
    }
}

static float bf16_dot(const uint8_t *w, const float *x, size_t cols)
{
    float lane[KERNELS_LANES] = {0}, group[KERNELS_GROUP];
    for (size_t c = 0; c < cols; c += KERNELS_GROUP) {
        size_t n = cols - c < KERNELS_GROUP ? cols - c : KERNELS_GROUP;
        bf16_group(group, w + 2 * c, n);
        lanes_add(lane, group, x + c, n);
    }
    return lanes_sum(lane);
}

void product_c_bf16(const struct product *p)
{
    for (size_t r = 0; r < p->rows; r++) {
        const uint8_t *w = (const uint8_t *)p->w + r * p->w_stride;
        for (size_t t = 0; t < p->vectors; t++)
            p->y[t * p->y_stride + r] = bf16_dot(w, p->x + t * p->x_stride, p->cols);
    }
}

static float pack12_dot(const struct pack12_block *b, size_t row, const float *x)
{
    float lane[KERNELS_LANES] = {0}, group[KERNELS_GROUP];
    uint16_t w[PACK12_UNIT];
    size_t next = pack12_block_start(b, row);
    for (size_t c = 0; c < b->header.cols; c += KERNELS_GROUP) {
        if (c % PACK12_UNIT == 0)
            pack12_block_unit(w, b, row, c / PACK12_UNIT, &next);
        bf16_group(group, w + c % PACK12_UNIT, KERNELS_GROUP);
        lanes_add(lane, group, x + c, KERNELS_GROUP);
    }
    return lanes_sum(lane);
}

void product_c_pack12(const struct product *p)
{
    struct pack12_block b = pack12_block_open(p->w);
    for (size_t r = 0; r < p->rows; r++)
        for (size_t t = 0; t < p->vectors; t++)
            p->y[t * p->y_stride + r] = pack12_dot(&b, p->first + r, p->x + t * p->x_stride);
}

/* The exact value of one nibble under a scale byte below 255: infinite beyond fp32, subnormal
 * where it must be. */
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
        for (size_t j = 0; j < HALF; j++) {
            uint8_t both = w[c / 2 + j];
            group[j] = mxfp4_value(both & 15, scale[c / KERNELS_GROUP]);
            group[HALF + j] = mxfp4_value(both >> 4, scale[c / KERNELS_GROUP]);
        }
        lanes_add(lane, group, x + c, KERNELS_GROUP);
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
