/*
 * A region being written: what may be overwritten, where an interrupted packing goes on, and
 * that the superblock comes last. Sums are in memory and reach the table before the draft
 * superblock says how many tiles are there.
 */
#ifndef CLIENT_REGION_FILE_H
#define CLIENT_REGION_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "proto/region.h"

struct region_file {
    const char *path;
    struct region region; /* as on the disk */
    int fd, direct;       /* for the head, and for the tiles */
    uint8_t *sums;        /* of all tiles */
};

struct region_file_options {
    const char *path;
    bool buffered, overwrite;
};

/* Opens for packing what `wanted` says; region.done and .complete tell what is there already.
 * A file is made with all its room. -EEXIST when something else is there. */
int region_file_open(struct region_file *f, const struct region_file_options *o,
                     const struct region *wanted, struct memory *m, struct problems *p);

/* Opens a finished region for reading. */
int region_file_read(struct region_file *f, const struct region_file_options *o,
                     struct memory *m, struct problems *p);

void region_file_close(struct region_file *f);

/* Writes packed tiles from rank on (in whole strides) and notes their sums. */
int region_file_put(struct region_file *f, uint64_t rank, const uint8_t *tiles, size_t count,
                    const uint8_t *sums);

/* Everything up to `done` is on the disk, and the head says so. */
int region_file_draft(struct region_file *f, uint64_t done);

/* The superblock proper. */
int region_file_complete(struct region_file *f);

#endif
