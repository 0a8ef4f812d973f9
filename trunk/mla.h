/* Latent attention in the absorbed form (model.md 3.4, docs/numerics.md). */
#ifndef TRUNK_MLA_H
#define TRUNK_MLA_H

#include "trunk/pass.h"

/* out [rows][hidden] from x [rows][hidden] in lane order, for all rows of the batch. The rows'
 * latents and keys are in the cache afterwards. */
void mla_run(struct pass *p, uint32_t layer, const float *x, float *out);

/* Scratch floats of mla_run() when a block of the weights holds at most `heads` heads, and of a
 * thread's own when a sequence has at most `positions`. */
size_t mla_room(const struct shape *s, size_t rows, size_t heads);
size_t mla_own_room(const struct shape *s, size_t positions);

#endif
