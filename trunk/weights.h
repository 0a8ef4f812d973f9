/*
 * The dense weights of a stage as a stream of blocks (docs/architecture.md).
 *
 * A *pass* gives every dense tensor of the stage's layers once, cut into blocks of whole rows,
 * in the one order in which the step consumes them (weights_plan.h). A block comes from memory
 * when it is pinned, else from disk through a ring of O_DIRECT reads that runs ahead of the
 * consumer, also into the next pass. What is pinned is decided block by block at open from the
 * budget; a pinned block is read the first time it passes. Results never depend on any of it.
 *
 * Two threads: the feeder (owns the disk, fills slots) and the step (takes and gives).
 */
#ifndef TRUNK_WEIGHTS_H
#define TRUNK_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/problems.h"
#include "proto/checkpoint.h"
#include "trunk/weights_plan.h"

struct weights;

struct weights_options {
    uint64_t ring;   /* bytes of the ring; at least weights_floor() */
    uint64_t pinned; /* bytes for pinned blocks; 0: everything streams */
    unsigned depth;  /* reads in flight */
    bool buffered;   /* without O_DIRECT */
};

struct weights_block {
    const struct weights_entry *entry; /* role, layer, dtype, shape of the whole tensor */
    const void *data;                  /* row `row`, then the others, gap-free */
    uint32_t row, rows;
    bool last; /* of this tensor */
    void *private_slot;
};

struct weights_counters {
    uint64_t bytes_read;   /* from disk, whole pages */
    uint64_t us_waited;    /* of the consumer in weights_take() */
    uint64_t bytes_pinned; /* held now */
};

/* Smallest ring that works for this plan: a few of its largest blocks. */
uint64_t weights_floor(const struct weights_plan *plan);

/* `plan` and `c` outlive it; areas are taken from `m` and listed there. */
int weights_open(struct weights **ret_w, const struct checkpoint *c,
                 const struct weights_plan *plan, const struct weights_options *o,
                 struct memory *m, struct problems *p);
int weights_start(struct weights *w); /* the feeder thread */
void weights_close(struct weights *w);

/* Begins a pass; with_head: the vocabulary head's tensors follow the last layer (only in plans
 * that have it). Every block must be taken and given, or the pass ended by weights_rewind(). */
void weights_begin(struct weights *w, bool with_head);

/* The next block of the pass; waits for it. -EIO and others with the tensor's name and file in
 * weights_error(); the pass is then over and must be rewound. */
int weights_take(struct weights *w, struct weights_block *ret_block);
/* Blocks are given in the order in which they were taken; several may be held at once. */
void weights_give(struct weights *w, struct weights_block *b);

/* Ends a pass early (cancelled or failed): nothing of it is outstanding any more. */
void weights_rewind(struct weights *w);

const char *weights_error(const struct weights *w);
void weights_counters(struct weights *w, struct weights_counters *ret_counters);

#endif
