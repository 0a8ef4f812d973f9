/*
 * A dense matrix of the pass times all rows: y = W x, over the blocks as they come. Nothing of
 * a result depends on how rows are cut into blocks, on threads, or on how many rows there are.
 */
#ifndef TRUNK_PRODUCT_H
#define TRUNK_PRODUCT_H

#include "trunk/pass.h"

/* The next tensor of the pass, which must be of this role, W [n][m]: y [rows][n] from x
 * [rows][m] in lane order. Nothing after an error. */
void product_run(struct pass *p, enum weights_role role, const float *x, float *y, size_t rows);

#endif
