/* The definitions as a table: what every other table is compared with. */
#include "kernels/variants.h"

const struct kernels table_c = {
    .name = "c",
    .lane_order = product_c_lane_order,
    .bf16_product = product_c_bf16,
    .mxfp4_product = product_c_mxfp4,
    .f32_product = product_c_f32,
    .pack12_product = product_c_pack12,
    .bf16_combine = combine_c_bf16,
    .f32_combine = combine_c_f32,
    .rms_norm = norm_c_rms,
    .l2_norm = norm_c_l2,
    .attention_residual = norm_c_attention_residual,
    .softmax = activation_c_softmax,
    .sigmoid = activation_c_sigmoid,
    .situ_glu = activation_c_situ_glu,
    .gate = activation_c_gate,
    .short_conv = activation_c_short_conv,
    .kda_decay = activation_c_kda_decay,
    .kda_step = kda_c_step,
    .accumulate = fixed_c_accumulate,
    .settle = fixed_c_settle,
};
