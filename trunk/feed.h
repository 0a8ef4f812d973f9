/* A gated MLP of dense weights: layer 0's, and the shared experts (model.md 3.7). */
#ifndef TRUNK_FEED_H
#define TRUNK_FEED_H

#include "trunk/pass.h"

/* out [rows][hidden] = down(SiTU-GLU(gate x, up x)), from x in lane order. */
void feed_run(struct pass *p, size_t width, const float *x, float *out);

size_t feed_room(size_t rows, size_t width); /* scratch floats */

#endif
