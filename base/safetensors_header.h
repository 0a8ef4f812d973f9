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

#include "base/jsontext_arena.h"
#include "base/problems.h"
#include "base/safetensors.h"

/* K3's largest header has 0.9 MB, and its tree 12 MB. */
#define SAFETENSORS_HEADER_MOST  ((size_t)16 << 20)
#define SAFETENSORS_LENGTH_BYTES 8

struct safetensors_entry {
    XXH128_hash_t name;
    struct safetensors_tensor tensor; /* shard 0 */
};

struct safetensors_header {
    struct safetensors_entry *entry; /* malloc'ed, in the JSON's order */
    size_t count;
};

XXH128_hash_t safetensors_header_name(const char *name);

/* A header as it was read. */
struct safetensors_json {
    const char *file; /* for sentences */
    char *text;
    size_t length;
    uint64_t data_bytes; /* of the file, behind the JSON */
};

/* Parses with the arena's memory, which is empty afterwards. -EINVAL with all that is wrong in
 * `p`; -ENOMEM. */
int safetensors_header_parse(const struct safetensors_json *json, struct jsontext_arena *arena,
                             struct safetensors_header *ret_header, struct problems *p);

#endif
