/*
 * The digest of an answer's logits: XXH3-128 over the little-endian fp32 logits of every
 * sampled position, in order. Two runs with one digest had the same bits at every position.
 */
#ifndef COORDINATOR_DIGEST_H
#define COORDINATOR_DIGEST_H

#include <stddef.h>
#define XXH_STATIC_LINKING_ONLY /* the state's size */
#include <xxhash.h>

struct digest {
    XXH3_state_t state;
};

void digest_init(struct digest *d);
void digest_add(struct digest *d, const float *logits, size_t count);
/* 32 hex digits and a zero, of what was added so far. */
void digest_text(const struct digest *d, char ret_text[33]);

#endif
