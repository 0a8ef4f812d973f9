/*
 * One shard's header: JSON in, checked tensors out. Private to safetensors.
 *
 * Format: 8 bytes little-endian length of the JSON; the JSON, an object from tensor name to
 * {dtype, shape, data_offsets: [begin, end)} and optionally __metadata__; then the data, which
 * the tensors must cover without gap or overlap.
 */
#ifndef BASE_SAFETENSORS_HEADER_H
#define BASE_SAFETENSORS_HEADER_H

#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

#include "base/problems.h"
#include "base/safetensors.h"

/* The parsed tree takes up to thirty times the JSON's bytes; K3's largest header has 0.9 MB. */
#define SAFETENSORS_HEADER_MOST ((size_t)16 << 20)

struct safetensors_entry {
    XXH128_hash_t name;
    struct safetensors_tensor tensor; /* shard 0 */
};

struct safetensors_header {
    struct safetensors_entry *entry; /* malloc'ed, in the JSON's order */
    size_t count;
};

XXH128_hash_t safetensors_header_name(const char *name);

/*
 * Parses the JSON of `file`, whose data are `data_bytes` bytes from `data_start` on. -EINVAL
 * with all that is wrong in `p`; -ENOMEM.
 */
int safetensors_header_parse(const char *file, const char *json, size_t length,
                             uint64_t data_start, uint64_t data_bytes,
                             struct safetensors_header *ret_header, struct problems *p);

#endif
