/* The writer of shards. */
#include "tests/base/shard.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

void shard_write_raw(struct scratch *s, const char *name, uint64_t length, const void *bytes,
                     size_t count)
{
    char *file = malloc(sizeof length + count);

    length = htole64(length);
    memcpy(file, &length, sizeof length);
    memcpy(file + sizeof length, bytes, count);
    scratch_write(s, name, file, sizeof length + count);
    free(file);
}

void shard_write(struct scratch *s, const char *name, const char *json, size_t data_bytes)
{
    size_t length = strlen(json);
    char *bytes = calloc(1, length + data_bytes + 1);

    memcpy(bytes, json, length);
    shard_write_raw(s, name, length, bytes, length + data_bytes);
    free(bytes);
}
