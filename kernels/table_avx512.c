/* The kernels for AVX-512: what is written in vectors, built for sixteen lanes, and the
 * products of this instruction set's own. */
#include "kernels/activation_vector.h"
#include "kernels/combine_vector.h"
#include "kernels/fixed_vector.h"
#include "kernels/kda_vector.h"
#include "kernels/norm_vector.h"
#include "kernels/variants.h"

const struct kernels table_avx512 = {
    .name = "avx512",
    .lane_order = product_c_lane_order,
    .bf16_product = dense_avx512_bf16,
    .mxfp4_product = mxfp4_avx512_product,
    .f32_product = dense_avx512_f32,
    .pack12_product = dense_avx512_pack12,
    .bf16_combine = combine_vector_bf16,
    .f32_combine = combine_vector_f32,
    .rms_norm = norm_vector_rms,
    .l2_norm = norm_vector_l2,
    .attention_residual = norm_vector_attention_residual,
    .softmax = activation_vector_softmax,
    .sigmoid = activation_vector_sigmoid,
    .situ_glu = activation_vector_situ_glu,
    .gate = activation_vector_gate,
    .short_conv = activation_vector_short_conv,
    .kda_decay = activation_vector_kda_decay,
    .kda_step = kda_vector_step,
    .accumulate = fixed_vector_accumulate,
    .settle = fixed_c_settle,
};
