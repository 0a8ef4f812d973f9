/*
 * How much of everything a stage takes, from its shape, its options and its budget.
 *
 * What the options leave open (0) starts at a sensible size and is halved, the dearest first,
 * until it fits half of the budget; what they say is kept. What is left after all of it goes to
 * pinned weights. When the budget does not hold the floor, opening fails with both figures.
 */
#ifndef TRUNK_SIZING_H
#define TRUNK_SIZING_H

#include <stdint.h>

#include "base/problems.h"
#include "proto/shape.h"
#include "trunk/states.h"
#include "trunk/weights_plan.h"

struct sizing_request {
    const struct shape *shape;
    const struct weights_plan *plan;
    uint32_t layers[2]; /* half-open */
    unsigned threads;
    size_t peers;
    uint64_t budget;
    uint64_t ring, sequences, positions, rows; /* 0: choose */
};

struct sizing {
    uint32_t rows_most, logits_most;
    struct states_options states;
    size_t heads;                /* of a block of WEIGHTS_KV_B, at most */
    size_t scratch, own, source; /* floats; own: of one thread */
    uint64_t output;             /* bytes of an answer's payload at most */
    uint64_t ring, pinned;       /* bytes */
    uint64_t needed;             /* bytes of all but the pinned weights */
};

/* -ENOSPC with a sentence. */
int sizing_choose(struct sizing *z, const struct sizing_request *q, struct problems *p);

#endif
