/*
 * The index of all *.safetensors shards of a folder, made from their headers alone.
 *
 * Names are kept as 128-bit XXH3 digests (two names with one digest are refused as a
 * duplicate), so half a million tensors take under 50 MB. Headers are input from outside: the
 * header length, JSON, dtypes, shapes, offsets, gaps, overlaps, overflow, names twice in one or
 * in two shards and data beyond the end of the file are refused with file, tensor, expected and
 * found. Read-only once open: any thread may look things up.
 */
#ifndef BASE_SAFETENSORS_H
#define BASE_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/problems.h"

enum safetensors_dtype { SAFETENSORS_F32, SAFETENSORS_BF16, SAFETENSORS_U8, SAFETENSORS_OTHER };

#define SAFETENSORS_DIMS 4

struct safetensors_tensor {
    uint64_t offset; /* in the file, not relative to the data */
    uint64_t bytes;
    uint32_t shape[SAFETENSORS_DIMS];
    uint8_t dims;
    uint8_t dtype;
    uint16_t shard; /* index of its file */
};

struct safetensors;

/* Opens every shard of `folder` in name order, two at a time. On failure the sentences are in
 * `p` and the result is -EINVAL (bad content) or what the system said. */
int safetensors_open(struct safetensors **ret_s, const char *folder, struct problems *p);
void safetensors_close(struct safetensors *s);

/* NULL when there is none. */
const struct safetensors_tensor *safetensors_find(const struct safetensors *s,
                                                  const char *name);

size_t safetensors_tensors(const struct safetensors *s);
size_t safetensors_shards(const struct safetensors *s);
const char *safetensors_path(const struct safetensors *s, size_t shard); /* folder/name */

/* XXH3-128 over every shard's file name (with its zero byte) and the XXH3-128 of its header's
 * JSON, in name order; both canonical, that is, big-endian. */
void safetensors_digest(const struct safetensors *s, uint8_t ret_digest[16]);

const char *safetensors_dtype_name(enum safetensors_dtype t);

#endif
