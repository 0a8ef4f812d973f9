/* The small tensors of a layer (norms, convolutions, biases), widened to fp32 into scratch. */
#ifndef TRUNK_VECTORS_H
#define TRUNK_VECTORS_H

#include "trunk/pass.h"

/* bf16 to fp32, exactly. */
void vectors_widen(float *out, const uint8_t *bf16, size_t n);

/* The next tensor of the pass, of this role and of n numbers in all. After an error the numbers
 * are undefined and nobody uses them. */
float *vectors_take(struct pass *p, enum weights_role role, size_t n);

/* The query of an attention residual: the norm's gain times the projection, folded in fp32. */
float *vectors_query(struct pass *p, enum weights_role norm, enum weights_role projection);

#endif
