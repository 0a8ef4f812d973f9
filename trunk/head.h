/* The model's tail (model.md 3.2): the last attention residual, the norm, the vocabulary. */
#ifndef TRUNK_HEAD_H
#define TRUNK_HEAD_H

#include "trunk/pass.h"

/* logits [wanted][vocab] of these rows of the batch. */
void head_run(struct pass *p, const uint32_t *row, size_t wanted, float *logits);

size_t head_room(const struct shape *s, size_t rows, size_t wanted); /* scratch floats */

#endif
