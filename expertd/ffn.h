/*
 * One tile: what a band of an expert adds to the rows that chose it (docs/numerics.md, bands
 * and integers; model.md 3.5). Pure: memory is the caller's.
 */
#ifndef EXPERTD_FFN_H
#define EXPERTD_FFN_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "proto/region.h"
#include "proto/shape.h"

#define FFN_ROWS 64 /* rows computed at a time; the tile is decoded once for all of them */

struct ffn {
    const struct kernels *kernels;
    const struct shape *shape;
    float *x;    /* [FFN_ROWS][padded latent]: chosen rows gathered */
    float *gate; /* [FFN_ROWS][padded band] */
    float *up;   /* [FFN_ROWS][padded band] */
    float *d;    /* [FFN_ROWS][latent] */
};

struct ffn_pair { /* a row that chose the expert, and how much it counts */
    uint32_t row;
    float weight;
};

size_t ffn_scratch_bytes(const struct shape *s);

/* `scratch`: ffn_scratch_bytes(), 64-aligned. */
void ffn_init(struct ffn *f, const struct kernels *k, const struct shape *s, void *scratch);

/* Adds the tile's weighted products into sum[row][latent] for every pair. `z` holds rows of
 * kernels_padded(latent) floats in lane order. -EDOM: a scale of 255, NaN or infinity; -ERANGE:
 * a product beyond 2^14. The sums are then partly advanced. */
int ffn_tile(struct ffn *f, const struct region_tile *t, const float *z,
             const struct ffn_pair *pair, size_t pairs, int64_t *sum);

#endif
