/*
 * Rank BPE of one piece (model.md 4.4): while some neighbouring parts joined have a rank, the
 * pair with the lowest is merged, the leftmost on ties.
 */
#ifndef COORDINATOR_TEXT_MERGE_H
#define COORDINATOR_TEXT_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "coordinator/text/ranks.h"

/* Room that is reused from piece to piece; one thread at a time. */
struct merge {
    const struct ranks *ranks;
    struct merge_part *part;
    struct merge_pair *pair;
    size_t room; /* bytes of a piece */
    size_t pairs;
};

void merge_init(struct merge *m, const struct ranks *ranks);
void merge_fini(struct merge *m);

/* Gives the ids of a piece of n >= 1 bytes to out[], which has room for n. Their number, or
 * -ENOMEM. */
ptrdiff_t merge_piece(struct merge *m, const uint8_t *bytes, size_t n, uint32_t *out);

#endif
