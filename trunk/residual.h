/* Attention residuals (model.md 3.2): what a sub-layer reads is a mix of the snapshots and the
 * running sum, weighted by a softmax over their scores. */
#ifndef TRUNK_RESIDUAL_H
#define TRUNK_RESIDUAL_H

#include "trunk/pass.h"

/* out [rows][hidden] = the mix of all sources of the pass, or the running sum when it is the
 * only one. query: vectors_query(). Nothing after an error. */
void residual_mix(struct pass *p, const float *query, float *out);

/* The running sum becomes a snapshot, and a new one begins with the next residual_add(). */
void residual_push(struct pass *p);

/* running = running + x, or x when it has just been pushed. */
void residual_add(struct pass *p, const float *x);

#endif
