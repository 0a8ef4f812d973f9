/* The mixture of experts (model.md 3.5, 3.6): the router, the latent, the routed experts by way
 * of struct gather, the shared experts while they are waited for. */
#ifndef TRUNK_MOE_H
#define TRUNK_MOE_H

#include "trunk/pass.h"

/* out [rows][hidden] from x [rows][hidden] in lane order. */
void moe_run(struct pass *p, uint32_t layer, const float *x, float *out);

size_t moe_room(const struct shape *s, size_t rows); /* scratch floats */

#endif
