/*
 * Kernels against results that are not ours: operator fixtures beside the source tree when they
 * are there (else the program is skipped), within the tolerance that comes with them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/kernels.h"

static const char *folder;
static const struct kernels *k;

static json_t *fixture(const char *name)
{
    char path[4096];
    json_error_t e;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    json_t *j = json_load_file(path, 0, &e);
    if (!j)
        fail_msg("%s: %s", path, e.text);
    return j;
}

/* The numbers of a field, flat; freed by the caller. */
static float *numbers(json_t *j, const char *field, size_t expected)
{
    json_t *data = json_object_get(json_object_get(j, field), "data");
    assert_int_equal(json_array_size(data), expected);
    float *x = malloc(expected * sizeof *x);
    for (size_t i = 0; i < expected; i++)
        x[i] = (float)json_number_value(json_array_get(data, i));
    return x;
}

static double scalar(json_t *j, const char *field)
{
    return json_number_value(json_object_get(j, field));
}

static void close_to(const float *got, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5f + 1e-4f * fabsf(want[i])))
            fail_msg("element %zu of %zu is %g, not %g", i, n, (double)got[i], (double)want[i]);
}

static void test_rms_norm(void **state)
{
    json_t *j = fixture("rmsnorm.json");
    float *x = numbers(j, "in", 384), *w = numbers(j, "weight", 128);
    float *want = numbers(j, "out", 384), y[384];
    for (size_t t = 0; t < 3; t++)
        k->rms_norm(y + 128 * t, x + 128 * t, w, 128, scalar(j, "eps"));
    close_to(y, want, 384);
    free(x);
    free(w);
    free(want);
    json_decref(j);
}

/* A row of the input is the gate's half and then the other. */
static void test_situ_glu(void **state)
{
    json_t *j = fixture("situ_glu.json");
    float *x = numbers(j, "in", 96), *want = numbers(j, "out", 48), y[48];
    const float b[2] = {(float)scalar(j, "beta"), (float)scalar(j, "linear_beta")};
    for (size_t t = 0; t < 6; t++)
        k->situ_glu(y + 8 * t, x + 16 * t, x + 16 * t + 8, 8, b);
    close_to(y, want, 48);
    free(x);
    free(want);
    json_decref(j);
}

static void test_short_conv(void **state)
{
    static const float zero[64];
    json_t *j = fixture("shortconv.json");
    float *x = numbers(j, "in", 320), *w = numbers(j, "weight", 256);
    float *want = numbers(j, "out", 320), y[64];
    for (size_t t = 0; t < 5; t++) {
        const float *u[4];
        for (size_t i = 0; i < 4; i++)
            u[i] = t + i < 3 ? zero : x + 64 * (t + i - 3);
        k->short_conv(y, u, w, 64);
        close_to(y, want + 64 * t, 64);
    }
    free(x);
    free(w);
    free(want);
    json_decref(j);
}

static void test_kda_decay(void **state)
{
    json_t *j = fixture("kda_decay.json");
    float *z = numbers(j, "z", 256), *rate = numbers(j, "A_log", 4);
    float *bias = numbers(j, "dt_bias", 64), *want = numbers(j, "alpha", 256), y[64];
    for (size_t h = 0; h < 4; h++)
        rate[h] = kernels_exp(rate[h]);
    for (size_t t = 0; t < 4; t++) {
        k->kda_decay(y, z + 64 * t, bias, rate, (size_t[2]){4, 16},
                     (float)scalar(j, "lower_bound"));
        close_to(y, want + 64 * t, 64);
    }
    free(z);
    free(rate);
    free(bias);
    free(want);
    json_decref(j);
}

static void recurrence(const char *name, size_t tokens)
{
    json_t *j = fixture(name);
    float *q = numbers(j, "q", 64 * tokens), *key = numbers(j, "k", 64 * tokens);
    float *v = numbers(j, "v", 64 * tokens), *alpha = numbers(j, "alpha", 64 * tokens);
    float *beta = numbers(j, "beta", 4 * tokens), *want = numbers(j, "out", 64 * tokens);
    float *end = numbers(j, "state_out", 1024), state[1024] = {0}, out[64], scratch[16];
    for (size_t i = 0; i < 64 * tokens; i++)
        q[i] *= (float)scalar(j, "q_scale");
    for (size_t t = 0; t < tokens; t++) {
        for (size_t h = 0; h < 4; h++) {
            size_t at = 64 * t + 16 * h;
            struct kda_step s = {state + 256 * h, q + at,       key + at, v + at, alpha + at,
                                 beta[4 * t + h], out + 16 * h, scratch,  16};
            k->kda_step(&s);
        }
        close_to(out, want + 64 * t, 64);
    }
    close_to(state, end, 1024);
    float *all[] = {q, key, v, alpha, beta, want, end};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    json_decref(j);
}

static void test_kda_recurrence(void **state)
{
    recurrence("kda_recur1.json", 1);
    recurrence("kda_recur8.json", 8);
}

static void test_attention_residual(void **state)
{
    json_t *j = fixture("attnres.json");
    float *blocks = numbers(j, "block_residual", 4096), *sum = numbers(j, "prefix_sum", 512);
    float *query = numbers(j, "fold_hint", 128), *want = numbers(j, "out", 512), y[128];
    for (size_t t = 0; t < 4; t++) {
        const float *source[9];
        for (size_t i = 0; i < 8; i++)
            source[i] = blocks + 1024 * t + 128 * i;
        source[8] = sum + 128 * t;
        k->attention_residual(y, source, 9, query, 128, scalar(j, "eps"));
        close_to(y, want + 128 * t, 128);
    }
    free(blocks);
    free(sum);
    free(query);
    free(want);
    json_decref(j);
}

/* The fixture lists the chosen by weight, the kernel by index. */
static void test_router(void **state)
{
    json_t *j = fixture("router.json");
    float *gate = numbers(j, "gate_weight", 1024), *x = numbers(j, "in", 768);
    float *bias = numbers(j, "bias", 8), *index = numbers(j, "topk_idx", 12);
    float *want = numbers(j, "topk_weight", 12), w[1024], v[128], logits[8], score[8];
    for (size_t e = 0; e < 8; e++)
        k->lane_order(w + 128 * e, gate + 128 * e, 128);
    for (size_t t = 0; t < 6; t++) {
        uint16_t expert[2];
        float weight[2];
        k->lane_order(v, x + 128 * t, 128);
        k->f32_product(&(struct product){.w = w,
                                         .w_stride = 512,
                                         .rows = 8,
                                         .cols = 128,
                                         .x = v,
                                         .x_stride = 128,
                                         .y = logits,
                                         .y_stride = 8,
                                         .vectors = 1});
        struct router r = {logits, bias, 8, 2, 1.0f, score, expert, weight};
        assert_int_equal(kernels_route(k, &r), 0);
        size_t swap = index[2 * t] > index[2 * t + 1];
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(expert[i], (int)index[2 * t + (i ^ swap)]);
            close_to(&weight[i], &want[2 * t + (i ^ swap)], 1);
        }
    }
    float *all[] = {gate, x, bias, index, want};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    json_decref(j);
}

/* Columns of the released rows by products with unit vectors: the values must be exact. */
static void test_released_nibbles(void **state)
{
    json_t *j = fixture("../mxfp4/k3-layer1-expert0-w1.json");
    json_t *bytes = json_object_get(json_object_get(j, "packed"), "data");
    json_t *scales = json_object_get(json_object_get(j, "scales"), "data");
    float *want = numbers(j, "expected", (size_t)64 * 3584), *x = calloc(3584, 4), y[64];
    uint8_t *w = malloc((size_t)64 * 1792), *scale = malloc((size_t)64 * 112);
    for (size_t i = 0; i < (size_t)64 * 1792; i++)
        w[i] = (uint8_t)json_integer_value(json_array_get(bytes, i));
    for (size_t i = 0; i < (size_t)64 * 112; i++)
        scale[i] = (uint8_t)json_integer_value(json_array_get(scales, i));
    for (size_t c = 0; c < 3584; c += 7) {
        float *one = x + c / 32 * 32 + (c & 1) * 16 + c % 32 / 2;
        *one = 1;
        struct product p = {.w = w,
                            .w_stride = 1792,
                            .scale = scale,
                            .scale_stride = 112,
                            .rows = 64,
                            .cols = 3584,
                            .x = x,
                            .x_stride = 3584,
                            .y = y,
                            .y_stride = 64,
                            .vectors = 1};
        assert_int_equal(k->mxfp4_product(&p), 0);
        *one = 0;
        for (size_t r = 0; r < 64; r++)
            assert_true(y[r] == want[r * 3584 + c]);
    }
    free(w);
    free(scale);
    free(x);
    free(want);
    json_decref(j);
}

int main(int argc, char **argv)
{
    const char *reason = "";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rms_norm),       cmocka_unit_test(test_situ_glu),
        cmocka_unit_test(test_short_conv),     cmocka_unit_test(test_kda_decay),
        cmocka_unit_test(test_kda_recurrence), cmocka_unit_test(test_attention_residual),
        cmocka_unit_test(test_router),         cmocka_unit_test(test_released_nibbles),
    };
    folder = argc > 1 ? argv[1] : "";
    k = kernels_best(NULL, &reason);
    if (!k || access(folder, R_OK)) {
        printf("skipped: %s\n", k ? "no operator fixtures beside the source tree" : reason);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
