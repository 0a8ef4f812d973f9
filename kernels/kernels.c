/* The tables of the instruction sets, and the choice between them. */
#include "kernels/kernels.h"

#include <string.h>

#include "kernels/variants.h"

/* What every table has that nobody made faster yet. */
#define TABLE_C                                                                                \
    .lane_order = product_c_lane_order, .bf16_product = product_c_bf16,                        \
    .mxfp4_product = product_c_mxfp4, .f32_product = product_c_f32,                            \
    .pack12_product = product_c_pack12, .bf16_combine = combine_c_bf16,                        \
    .f32_combine = combine_c_f32, .rms_norm = norm_c_rms, .l2_norm = norm_c_l2,                \
    .attention_residual = norm_c_attention_residual, .softmax = activation_c_softmax,          \
    .sigmoid = activation_c_sigmoid, .situ_glu = activation_c_situ_glu,                        \
    .gate = activation_c_gate, .short_conv = activation_c_short_conv,                          \
    .kda_decay = activation_c_kda_decay, .kda_step = kda_c_step,                               \
    .accumulate = fixed_c_accumulate, .settle = fixed_c_settle

static const struct kernels table_c = {.name = "c", TABLE_C};

#if defined(__x86_64__)

/* The same machine code from the C files, and products of their own. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const struct kernels table_avx2 = {
    .name = "avx2",
    TABLE_C,
    .bf16_product = product_avx2_bf16,
    .mxfp4_product = product_avx2_mxfp4,
    .f32_product = product_avx2_f32,
};

static const struct kernels table_avx512 = {
    .name = "avx512",
    TABLE_C,
    .bf16_product = product_avx512_bf16,
    .mxfp4_product = product_avx512_mxfp4,
    .f32_product = product_avx512_f32,
};
#pragma GCC diagnostic pop

static int machine_has(const struct kernels *k)
{
    __builtin_cpu_init();
    if (k == &table_avx512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static const struct kernels *const tables[] = {&table_avx512, &table_avx2, &table_c};

#define FLOOR "this CPU lacks AVX2 or FMA, the least Kapok runs on"

#else

static int machine_has(const struct kernels *k)
{
    return 1;
}

static const struct kernels *const tables[] = {&table_c};

#define FLOOR ""

#endif

#define TABLES (sizeof tables / sizeof tables[0])

const struct kernels *kernels_best(const char *at_most, const char **ret_reason)
{
    size_t i = 0;
    if (!machine_has(&table_c)) {
        *ret_reason = FLOOR;
        return NULL;
    }
    if (!at_most) {
        while (!machine_has(tables[i]))
            i++;
        return tables[i];
    }
    while (i < TABLES && strcmp(tables[i]->name, at_most))
        i++;
    if (i == TABLES)
        *ret_reason = "there is no such instruction set: c, avx2, avx512 (c alone on aarch64)";
    else if (!machine_has(tables[i]))
        *ret_reason = "this CPU does not have that instruction set";
    else
        return tables[i];
    return NULL;
}
