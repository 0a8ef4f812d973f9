/* Shards for tests, good and hostile, written from the JSON of their header. */
#ifndef TESTS_BASE_SHARD_H
#define TESTS_BASE_SHARD_H

#include <stddef.h>
#include <stdint.h>

#include "tests/base/scratch.h"

/* Eight bytes of length, the JSON, and that many bytes of data. */
void shard_write(struct scratch *s, const char *name, const char *json, size_t data_bytes);

/* The same with a length that says something else, over bytes of any kind. */
void shard_write_raw(struct scratch *s, const char *name, uint64_t length, const void *bytes,
                     size_t count);

#endif
