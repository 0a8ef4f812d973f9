/*
 * The payload of Compute: written by the trunk, read by an expertd through one bounded reader.
 *
 *     z f32 [rows][latent] | u16 expert [total] | zeros to a multiple of 4 | f32 weight [total]
 *
 * total is the sum of the header's counts; the experts of row t begin at the sum of the counts
 * before it and increase strictly within a row.
 */
#ifndef PROTO_COMPUTE_H
#define PROTO_COMPUTE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/msg.h"
#include "proto/shape.h"

struct compute {
    uint32_t layer, rows;
    uint64_t bands;
    const float *z;          /* [rows][latent] */
    const uint32_t *counts;  /* [rows] */
    const uint16_t *experts; /* [total] */
    const float *weights;    /* [total] */
    size_t total;
};

size_t compute_bytes(const struct shape *s, uint32_t rows, size_t total);

/* Checks everything against the shape: layer with experts, bands that exist, counts, sizes,
 * expert numbers, strictly increasing, finite z and weights. -EBADMSG with a sentence. */
int compute_open(struct compute *c, const struct msg *m, const struct shape *s,
                 const char **ret_why);

/* Writes the payload of `c` (the pointers of which lie elsewhere) to out. */
void compute_write(const struct compute *c, const struct shape *s, uint8_t *out);

#endif
