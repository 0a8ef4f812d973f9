/*
 * What is done to every row by itself, over all threads: norms, activations, sums, lane order.
 * Nothing after an error.
 */
#ifndef TRUNK_ROWWISE_H
#define TRUNK_ROWWISE_H

#include "trunk/pass.h"

/* out = x in lane order; n numbers a row, out rows kernels_padded(n) apart. */
void rowwise_lane(struct pass *p, float *out, const float *x, size_t rows, size_t n);

/* x = the RMS norm of x with this gain, in place (model.md 3.1). */
void rowwise_norm(struct pass *p, float *x, const float *gain, size_t rows, size_t n);

/* y = y + x */
void rowwise_add(struct pass *p, float *y, const float *x, size_t rows, size_t n);

/* gate = SiTU-GLU of gate and up (model.md 3.7). */
void rowwise_situ(struct pass *p, float *gate, const float *up, size_t rows, size_t n);

/* y = y * sigmoid(gate) */
void rowwise_gate(struct pass *p, float *y, const float *gate, size_t rows, size_t n);

#endif
