/* One layer (model.md 3.2). */
#ifndef TRUNK_LAYER_H
#define TRUNK_LAYER_H

#include "trunk/pass.h"

/* Advances the pass's running sum, and its snapshots, by this layer. Nothing after an error. */
void layer_run(struct pass *p, uint32_t layer);

/* Scratch floats of the largest of these layers; `heads`: as in mla_room(). */
size_t layer_room(const struct shape *s, const uint32_t layers[2], size_t rows, size_t heads);

#endif
