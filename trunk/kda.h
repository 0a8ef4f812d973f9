/* Kimi delta attention (model.md 3.3): projections, short convolutions, the recurrence. */
#ifndef TRUNK_KDA_H
#define TRUNK_KDA_H

#include "trunk/pass.h"

/* out [rows][hidden] from x [rows][hidden] in lane order, for all rows of the batch. The
 * sequences' tips hold the state after their rows. */
void kda_run(struct pass *p, uint32_t layer, const float *x, float *out);

/* Advances a sequence's base, in all layers of the stage, by its first `accepted` pending rows,
 * from their records. */
void kda_replay(struct pass *p, struct state *st, uint32_t accepted);

/* Scratch floats of kda_run(), and of a thread's own. */
size_t kda_room(const struct shape *s, size_t rows);
size_t kda_own_room(const struct shape *s);

#endif
