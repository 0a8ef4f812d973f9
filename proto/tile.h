/*
 * Which tiles of the expert grid (layer x expert x band, docs/architecture.md) somebody holds,
 * and whether several holders together cover the model.
 *
 * A tile set is a short list of boxes, as it travels in Hello. Coverage is a bit mask of bands
 * per (layer, expert).
 */
#ifndef PROTO_TILE_H
#define PROTO_TILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/problems.h"
#include "proto/shape.h"

#define TILE_BOXES 64

struct tile_box { /* half-open ranges */
    uint32_t layer_first, layer_end;
    uint32_t expert_first, expert_end;
    uint64_t bands; /* bit b: band b */
};

struct tile_set {
    size_t boxes;
    struct tile_box box[TILE_BOXES];
};

/* From the texts of --layers, --experts, --bands: "1-5,9" (inclusive), NULL for all. Layers
 * without experts are left out of "all" and are a problem when named. -EINVAL with sentences.
 */
int tile_set_parse(struct tile_set *t, const struct shape *s, const char *layers,
                   const char *experts, const char *bands, struct problems *p);

/* -EINVAL when a box is empty or leaves the grid (sets come from outside). */
int tile_set_check(const struct tile_set *t, const struct shape *s);

/* Bands of (layer, expert) in the set, as a mask. */
uint64_t tile_set_bands(const struct tile_set *t, uint32_t layer, uint32_t expert);

uint64_t tile_set_count(const struct tile_set *t, const struct shape *s);

/* A list of numbers in the caller's memory. */
struct tile_numbers {
    uint32_t *number;
    size_t room, count;
};

/* Parses "0-5,7" into increasing numbers below `limit`; `what` names them in sentences. Used
 * for layers, experts, bands. -EINVAL with a sentence, -ENOSPC when they are more than there is
 * room for. */
int tile_ranges(struct tile_numbers *n, const char *what, const char *text, uint32_t limit,
                struct problems *p);

struct tile_coverage {
    const struct shape *shape;
    uint32_t layer_first, layer_end; /* what has to be covered */
    uint64_t *mask;                  /* [layer - layer_first][expert] */
};

int tile_coverage_open(struct tile_coverage *c, const struct shape *s, uint32_t layer_first,
                       uint32_t layer_end);
void tile_coverage_close(struct tile_coverage *c);
void tile_coverage_clear(struct tile_coverage *c);
void tile_coverage_add(struct tile_coverage *c, const struct tile_set *t);
uint64_t tile_coverage_held(const struct tile_coverage *c);   /* tiles */
uint64_t tile_coverage_needed(const struct tile_coverage *c); /* tiles */
/* First tile nobody holds: 1 and its place, or 0 when all are covered. */
int tile_coverage_missing(const struct tile_coverage *c, uint32_t ret_tile[3]);

#endif
