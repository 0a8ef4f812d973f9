/*
 * The plan cut into pieces, and which of them memory holds for good.
 *
 * A piece is one block: a run of whole rows of one tensor. Pinning spends the budget to the
 * last piece: first everything small (a thousand reads a pass saved for a few megabytes), then
 * matrix blocks spread evenly over the pass, so that the disk is asked for the same share of
 * every layer.
 */
#ifndef TRUNK_WEIGHTS_CUT_H
#define TRUNK_WEIGHTS_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trunk/weights_plan.h"

struct weights_piece {
    uint32_t entry; /* of the plan */
    uint32_t row, rows;
    uint64_t offset;
    size_t length, span; /* bytes; bytes of a buffer that a page-wise read of it needs */
    bool pinned;
    bool claimed;  /* pinned, and read or being read */
    bool present;  /* pinned, and in memory */
    uint8_t *home; /* where it is pinned */
    uint32_t skip; /* its first byte in the buffer */
};

struct weights_cut {
    struct weights_piece *piece;
    size_t pieces, head; /* head: the first piece of the vocabulary head, or `pieces` */
    size_t span_most;    /* of one piece */
    uint64_t pinned_bytes;
};

int weights_cut_open(struct weights_cut *cut, const struct weights_plan *plan);
void weights_cut_close(struct weights_cut *cut);

/* Marks what to pin, at most `budget` bytes of spans together; sets pinned_bytes. */
void weights_cut_pin(struct weights_cut *cut, uint64_t budget);

/* Gives every pinned piece its home in an area of pinned_bytes. */
void weights_cut_settle(struct weights_cut *cut, uint8_t *area);

#endif
