/*
 * The vocabulary's ranks: byte strings and their token ids, from `tiktoken.model`
 * (model.md 4.1).
 *
 * A line is base64(bytes), a space, the rank; ranks are contiguous from 0 and in order, all
 * strings differ, and every single byte is one of them. Anything else is refused with the line.
 * Read-only once open: any thread may use it.
 */
#ifndef COORDINATOR_TEXT_RANKS_H
#define COORDINATOR_TEXT_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/problems.h"

#define RANKS_NONE UINT32_MAX

struct ranks {
    uint8_t *bytes;   /* all strings, one after the other */
    uint32_t *offset; /* [count + 1] */
    uint32_t count;
    uint32_t *slot; /* hash table of ranks, RANKS_NONE: empty */
    size_t slots;   /* a power of two */
    size_t longest;
};

/* At most `most` ranks. -ENOENT (without a sentence) when there is no such file; -EINVAL and
 * others with sentences. */
int ranks_open(struct ranks *r, const char *path, uint32_t most, struct problems *p);
void ranks_close(struct ranks *r);

/* RANKS_NONE when the string is none of them. */
uint32_t ranks_find(const struct ranks *r, const uint8_t *bytes, size_t length);

const uint8_t *ranks_bytes(const struct ranks *r, uint32_t rank, size_t *ret_length);

#endif
