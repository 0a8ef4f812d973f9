/*
 * Where the bytes of experts lie, and whether they are the right ones: the served tiles of a
 * checkpoint in place, or of a packed region.
 *
 * A load brings some bands of one expert into one slot of memory. In a region these are its
 * tiles, adjacent. In place they are the rows of w1 and w3 (and their scales) of those bands,
 * and all of w2, whose columns interleave; an expert is six tensors that may lie anywhere in
 * any shard. Fragments whose pages touch become one read, so an expert in the release's order
 * with all its bands is exactly one. Plans are arithmetic: whoever needs one makes it again.
 *
 * A region has a checksum of every tile; a checkpoint has them when `kapok verify` was run on
 * it. Read-only once open: any thread may use it.
 */
#ifndef EXPERTD_SOURCE_H
#define EXPERTD_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/problems.h"
#include "proto/checkpoint.h"
#include "proto/region.h"
#include "proto/tile.h"

#define SOURCE_READS (2 * SHAPE_BANDS + 2) /* of one load at most: every other band */

struct source_read {
    uint32_t file;
    uint64_t offset; /* in the file */
    size_t length;
    size_t at; /* where its pages begin in the slot */
};

struct source_plan {
    size_t reads, bytes; /* bytes: of the slot */
    struct source_read read[SOURCE_READS];
};

struct source;

struct source_kind { /* what differs between the two */
    void (*plan)(const struct source *s, const uint32_t layer_expert[2], uint64_t bands,
                 struct source_plan *ret_plan);
    struct region_tile (*tile)(const struct source *s, const struct source_plan *plan,
                               const uint32_t place[3], const uint8_t *slot);
    uint64_t (*position)(const struct source *s, uint32_t layer, uint32_t expert);
    const char *(*path)(const struct source *s, uint32_t file);
};

struct source_place { /* of one expert in place: offsets in the files of shards */
    uint64_t offset[REGION_PARTS];
    uint16_t shard[REGION_PARTS];
};

struct source {
    const struct source_kind *kind;
    const struct shape *shape;
    struct tile_set tiles;
    struct region region; /* of the data when packed, else of the checksums, if there are any */
    const uint8_t *sums;  /* by rank in `region`; NULL: what is read is not checked */
    int *fd;              /* by file; -1: holds nothing that is served */
    size_t files;
    size_t slot_bytes;     /* of the largest load */
    unsigned reads_most;   /* of one load */
    uint64_t experts_held; /* (layer, expert) pairs */
    /* in place: */
    const struct checkpoint *checkpoint;
    struct source_place *place; /* [layer - dense_layers][expert], served ones filled */
    /* packed: */
    const char *name;
};

/* A checkpoint in place. -EINVAL with sentences when tensors are missing or of another shape,
 * or what the system said. The checkpoint must outlive it. `check`: by its REGION_SUMS. */
int source_inplace_open(struct source *s, const struct checkpoint *c,
                        const struct tile_set *tiles, const bool buffered_check[2],
                        struct memory *m, struct problems *p);

/* The superblock of a region, complete and sound; before everything else. */
int source_packed_peek(const char *path, struct region *ret_region, struct problems *p);

/* A packed region. `shape` must be that of its checkpoint; both texts must outlive it. */
int source_packed_open(struct source *s, const char *path, const struct shape *shape,
                       const bool buffered_check[2], struct memory *m, struct problems *p);

void source_close(struct source *s);

uint64_t source_bands(const struct source *s, uint32_t layer, uint32_t expert);

/* Reads that bring these bands (which must be held) into a slot. */
void source_plan(const struct source *s, const uint32_t layer_expert[2], uint64_t bands,
                 struct source_plan *ret_plan);

/* The tile {layer, expert, band} in a slot that was filled by the plan. */
struct region_tile source_tile(const struct source *s, const struct source_plan *plan,
                               const uint32_t place[3], const uint8_t *slot);

/* Are these the bytes that were packed or verified? `scratch`: region_scratch(). */
bool source_sound(const struct source *s, const struct region_tile *t, const uint32_t place[3],
                  uint8_t *scratch);

/* First byte of the expert, for sorting; and a file to name in a sentence. */
uint64_t source_position(const struct source *s, uint32_t layer, uint32_t expert);
const char *source_path(const struct source *s, uint32_t file);

/* ---- for the kinds ---- */

/* Opens one file for reading. */
int source_open_file(struct source *s, uint32_t file, bool buffered, struct problems *p);
/* The checksum table of `region` out of the file `fd`. */
int source_take_sums(struct source *s, int fd, struct memory *m, struct problems *p);
/* The largest load and the number of experts. */
void source_measure(struct source *s);

#endif
