/*
 * Where the bytes of experts lie: the served tiles of a checkpoint, in place.
 *
 * An expert is six tensors that may lie anywhere in any shard. A load brings some of its bands
 * into one slot of memory: the rows of w1 and w3 (and their scales) of those bands, and all of
 * w2, whose columns interleave. Fragments whose pages touch become one read, so an expert in
 * the release's order with all its bands is exactly one. Plans are arithmetic on the index:
 * whoever needs one makes it again. Read-only once open: any thread may use it.
 */
#ifndef EXPERTD_SOURCE_H
#define EXPERTD_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/problems.h"
#include "expertd/ffn.h"
#include "proto/checkpoint.h"
#include "proto/tile.h"

#define SOURCE_PARTS 6                     /* tensors of an expert */
#define SOURCE_READS (2 * SHAPE_BANDS + 2) /* of one load at most: every other band */

struct source_place { /* of one expert: offsets in the files of shards */
    uint64_t offset[SOURCE_PARTS];
    uint16_t shard[SOURCE_PARTS];
};

struct source {
    const struct checkpoint *checkpoint;
    const struct shape *shape;
    struct tile_set tiles;
    struct source_place *place; /* [layer - dense_layers][expert], served ones filled */
    int *fd;                    /* by shard; -1: holds nothing that is served */
    size_t shards;
    size_t slot_bytes;     /* of the largest load */
    unsigned reads_most;   /* of one load */
    uint64_t experts_held; /* (layer, expert) pairs */
};

struct source_read {
    uint16_t shard;
    uint64_t offset; /* in the file */
    size_t length;
    size_t at; /* where its pages begin in the slot */
};

struct source_plan {
    size_t reads, bytes; /* bytes: of the slot */
    struct source_read read[SOURCE_READS];
};

/* -EINVAL with sentences when tensors are missing or of another shape, or what the system
 * said. The checkpoint must outlive it. */
int source_open(struct source *s, const struct checkpoint *c, const struct tile_set *tiles,
                bool buffered, struct memory *m, struct problems *p);
void source_close(struct source *s);

uint64_t source_bands(const struct source *s, uint32_t layer, uint32_t expert);

/* Reads that bring these bands (which must be held) into a slot. */
void source_plan(const struct source *s, const uint32_t layer_expert[2], uint64_t bands,
                 struct source_plan *ret_plan);

/* One tile in a slot that was filled by the plan. */
struct ffn_tile source_tile(const struct source *s, const struct source_plan *plan,
                            const uint32_t layer_expert_band[3], const uint8_t *slot);

/* First byte of the expert, for sorting; and a file to name in a sentence. */
uint64_t source_position(const struct source *s, uint32_t layer, uint32_t expert);
const char *source_path(const struct source *s, uint16_t shard);

#endif
