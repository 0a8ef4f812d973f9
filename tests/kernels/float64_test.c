/*
 * Kernels against float64 computed here from the mathematics alone: that the definition itself
 * is right, which comparing variants with it cannot show.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"

#define COLS 1000
#define ROWS 7

static const struct kernels *k;

/* Around 1, both signs, the same in every run. */
static float value(uint32_t i)
{
    i = (i + 1) * 2654435761u;
    i ^= i >> 15;
    return (float)((int)(i * 2246822519u >> 8) - (1 << 23)) * 0x1p-22f;
}

static void near(double got, double want, double size)
{
    if (!(fabs(got - want) <= 1e-6 * size))
        fail_msg("%.9g, not %.9g", got, want);
}

static void test_bf16_product(void **state)
{
    uint16_t w[ROWS][COLS];
    float natural[COLS], x[1024], y[ROWS];
    for (uint32_t i = 0; i < ROWS * COLS; i++) {
        float v = value(i);
        memcpy(&w[i / COLS][i % COLS], (uint8_t *)&v + 2, 2);
    }
    for (uint32_t i = 0; i < COLS; i++)
        natural[i] = value(i + 77777);
    k->lane_order(x, natural, COLS);
    k->bf16_product(&(struct product){.w = w,
                                      .w_stride = sizeof w[0],
                                      .rows = ROWS,
                                      .cols = COLS,
                                      .x = x,
                                      .x_stride = 1024,
                                      .y = y,
                                      .y_stride = ROWS,
                                      .vectors = 1});
    for (size_t r = 0; r < ROWS; r++) {
        double sum = 0, size = 0;
        for (size_t c = 0; c < COLS; c++) {
            uint32_t bits = (uint32_t)w[r][c] << 16;
            float v;
            memcpy(&v, &bits, sizeof v);
            sum += (double)v * (double)natural[c];
            size += fabs((double)v * (double)natural[c]);
        }
        near((double)y[r], sum, size);
    }
}

/* One row with each nibble under scales 2^-1, 2^0, 2^1. */
static void test_mxfp4_product(void **state)
{
    static const double e2m1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const uint8_t scale[3] = {126, 127, 128};
    uint8_t w[48];
    float natural[96], x[96], y;
    double sum = 0;
    for (uint32_t i = 0; i < 48; i++)
        w[i] = (uint8_t)(i * 37 + 11);
    for (uint32_t i = 0; i < 96; i++) {
        unsigned nibble = w[i / 2] >> i % 2 * 4 & 15;
        natural[i] = value(i);
        sum += (nibble & 8 ? -1 : 1) * e2m1[nibble & 7] * ldexp(1, (int)(i / 32) - 1) *
               (double)natural[i];
    }
    k->lane_order(x, natural, 96);
    struct product p = {.w = w,
                        .w_stride = 48,
                        .scale = scale,
                        .scale_stride = 3,
                        .rows = 1,
                        .cols = 96,
                        .x = x,
                        .x_stride = 96,
                        .y = &y,
                        .y_stride = 1,
                        .vectors = 1};
    assert_int_equal(k->mxfp4_product(&p), 0);
    near((double)y, sum, 200);
}

static void test_functions(void **state)
{
    const float b[2] = {4, 25};
    float gate[200], up[200], y[200];
    for (uint32_t i = 0; i < 200; i++) {
        gate[i] = 6 * value(i);
        up[i] = 30 * value(i + 1000);
    }
    k->situ_glu(y, gate, up, 200, b);
    for (size_t i = 0; i < 200; i++) {
        double g = (double)gate[i];
        near((double)y[i], 4 * tanh(g / 4) / (1 + exp(-g)) * 25 * tanh((double)up[i] / 25),
             100);
    }
    k->softmax(gate, 200);
    double sum = 0;
    for (uint32_t i = 0; i < 200; i++)
        sum += exp((double)(6 * value(i)));
    for (uint32_t i = 0; i < 200; i++)
        near((double)gate[i], exp((double)(6 * value(i))) / sum, 1);
}

static void test_norms(void **state)
{
    float x[100], gain[100], y[100];
    double squares = 0;
    for (uint32_t i = 0; i < 100; i++) {
        x[i] = value(i);
        gain[i] = value(i + 500);
        squares += (double)x[i] * (double)x[i];
    }
    k->rms_norm(y, x, gain, 100, 1e-5);
    for (size_t i = 0; i < 100; i++)
        near((double)y[i], (double)x[i] * (double)gain[i] / sqrt(squares / 100 + 1e-5), 4);
    memcpy(y, x, sizeof y);
    k->l2_norm(y, 100, 1e-6, 0.5f);
    for (size_t i = 0; i < 100; i++)
        near((double)y[i], 0.5 * (double)x[i] / sqrt(squares + 1e-6), 1);
}

static void test_fixed(void **state)
{
    const float d[3] = {1.5f, -2.25f, 0x1p-41f};
    int64_t sum[3] = {0, 1, 2};
    float out[3];
    assert_int_equal(k->accumulate(sum, d, 0.5f, 3), 0);
    assert_true(sum[0] == (int64_t)(0.75 * 0x1p40));
    assert_true(sum[1] == 1 - (int64_t)(1.125 * 0x1p40));
    assert_true(sum[2] == 2); /* a quarter rounds to nothing */
    k->settle(out, sum, 3);
    assert_true(out[0] == 0.75f && out[2] == 0x1p-39f);
}

int main(void)
{
    const char *reason = "";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bf16_product), cmocka_unit_test(test_mxfp4_product),
        cmocka_unit_test(test_functions),    cmocka_unit_test(test_norms),
        cmocka_unit_test(test_fixed),
    };
    k = kernels_best(NULL, &reason);
    if (!k) {
        printf("skipped: %s\n", reason);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
