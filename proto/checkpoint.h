/*
 * A checkpoint folder: its shape, the index of its shards, and the digest by which processes
 * know that they speak of the same model (XXH3-128 over config.json and every shard header).
 *
 * Read-only once open: any thread may use it.
 */
#ifndef PROTO_CHECKPOINT_H
#define PROTO_CHECKPOINT_H

#include <stdint.h>

#include "base/problems.h"
#include "base/safetensors.h"
#include "proto/shape.h"

#define CHECKPOINT_DIGEST 16

struct checkpoint {
    char *folder;
    struct shape shape;
    struct safetensors *tensors;
    uint8_t digest[CHECKPOINT_DIGEST];
};

/* -EINVAL with sentences in `p`, or what the system said (also with a sentence). */
int checkpoint_open(struct checkpoint *c, const char *folder, struct problems *p);
void checkpoint_close(struct checkpoint *c);

/* One tensor that must have this dtype and shape (`dims` numbers of `shape`). NULL with a
 * sentence that names it, what was expected and what was found. */
const struct safetensors_tensor *checkpoint_tensor(const struct checkpoint *c, const char *name,
                                                   enum safetensors_dtype dtype,
                                                   const uint32_t *shape, unsigned dims,
                                                   struct problems *p);

/* Digest as 32 hex digits and a zero. */
void checkpoint_digest_text(const uint8_t digest[CHECKPOINT_DIGEST], char ret_text[33]);

#endif
