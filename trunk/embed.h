/*
 * The embedding table: rows are read one by one from the checkpoint when a step brings their
 * tokens; the table is never in memory. The step's thread owns the disk.
 */
#ifndef TRUNK_EMBED_H
#define TRUNK_EMBED_H

#include "base/disk.h"
#include "base/memory.h"
#include "proto/checkpoint.h"

#define EMBED_DEPTH 32 /* reads in flight */

struct embed {
    const struct checkpoint *checkpoint;
    const struct safetensors_tensor *tensor;
    struct disk *disk;
    int fd;
    uint8_t *buffer; /* [EMBED_DEPTH][span] */
    size_t span;
    struct disk_read read[EMBED_DEPTH];
    uint32_t row[EMBED_DEPTH]; /* that each read is for */
    uint64_t bytes_read;
    char error[320];
};

uint64_t embed_bytes(const struct shape *s);

/* -EINVAL and others with sentences in `p`; closing what was not opened needs a zeroed one. */
int embed_open(struct embed *e, const struct checkpoint *c, bool buffered, struct memory *m,
               struct problems *p);
void embed_close(struct embed *e);

/* out [rows][hidden], widened. -EIO and others, with a sentence in e->error. */
int embed_rows(struct embed *e, const uint32_t *token, uint32_t rows, float *out);

#endif
