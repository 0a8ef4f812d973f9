/*
 * Reads whole experts of a checkpoint one after the other, a few ahead: for packing and for
 * verifying. One thread.
 */
#ifndef CLIENT_EXPERT_READER_H
#define CLIENT_EXPERT_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/disk.h"
#include "base/memory.h"
#include "proto/checkpoint.h"
#include "proto/region.h"

#define EXPERT_READER_AHEAD 6 /* experts */

struct expert_reader_slot {
    uint8_t *bytes;
    const uint8_t *part[REGION_PARTS];
    struct disk_read read[REGION_PARTS];
    unsigned left; /* reads under way */
    int error;
};

struct expert_reader {
    const struct checkpoint *checkpoint;
    const struct region *region;
    struct disk *disk;
    int *fd;               /* by shard, -1: not open */
    uint64_t next, expert; /* rank of the next to be read, and to be given; of experts */
    uint64_t experts;
    struct expert_reader_slot slot[EXPERT_READER_AHEAD];
    bool buffered;
};

struct expert_reader_options {
    uint64_t first; /* number of the expert to begin with */
    bool buffered;
};

/* The experts of `region`, which must be of this checkpoint. */
int expert_reader_open(struct expert_reader *r, const struct checkpoint *c,
                       const struct region *region, struct expert_reader_options o,
                       struct memory *m, struct problems *p);
void expert_reader_close(struct expert_reader *r);

/* Gives the next expert; its bytes stay until the next call. 1, 0 at the end, or an error with
 * a sentence. */
int expert_reader_next(struct expert_reader *r, uint32_t ret_layer_expert[2],
                       struct problems *p);

/* One band of the expert that was given. */
struct region_tile expert_reader_tile(const struct expert_reader *r, uint32_t band);

#endif
