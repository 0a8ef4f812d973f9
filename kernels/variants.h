/* The functions of each instruction set, for the tables in kernels.c. Private to kernels/. */
#ifndef KERNELS_VARIANTS_H
#define KERNELS_VARIANTS_H

#include "kernels/kernels.h"

extern const struct kernels table_c, table_avx2, table_avx512; /* each in its file */

/* product_c.c */
void product_c_lane_order(float *out, const float *x, size_t n);
void product_c_bf16(const struct product *p);
int product_c_mxfp4(const struct product *p);
void product_c_f32(const struct product *p);
void product_c_pack12(const struct product *p);

/* dense_avx2.c, mxfp4_avx2.c */
void dense_avx2_bf16(const struct product *p);
void dense_avx2_f32(const struct product *p);
void dense_avx2_pack12(const struct product *p);
int mxfp4_avx2_product(const struct product *p);

/* dense_avx512.c, mxfp4_avx512.c */
void dense_avx512_bf16(const struct product *p);
void dense_avx512_f32(const struct product *p);
void dense_avx512_pack12(const struct product *p);
int mxfp4_avx512_product(const struct product *p);

/* combine_c.c */
void combine_c_bf16(const struct combination *c);
void combine_c_f32(const struct combination *c);

/* norm_c.c */
void norm_c_rms(float *y, const float *x, const float *gain, size_t n, double eps);
void norm_c_l2(float *x, size_t n, double eps, float scale);
void norm_c_attention_residual(float *out, const float *const *source, size_t sources,
                               const float *query, size_t n, double eps);

/* activation_c.c */
void activation_c_softmax(float *score, size_t n);
void activation_c_sigmoid(float *y, const float *x, size_t n);
void activation_c_situ_glu(float *y, const float *gate, const float *up, size_t n,
                           const float b[2]);
void activation_c_gate(float *y, const float *x, const float *gate, size_t n);
void activation_c_short_conv(float *y, const float *const u[4], const float *w,
                             size_t channels);
void activation_c_kda_decay(float *alpha, const float *z, const float *bias, const float *rate,
                            const size_t heads_dim[2], float floor);

/* kda_c.c */
void kda_c_step(const struct kda_step *s);

/* fixed_c.c */
int fixed_c_accumulate(int64_t *sum, const float *d, float weight, size_t n);
void fixed_c_settle(float *out, const int64_t *sum, size_t n);

#endif
