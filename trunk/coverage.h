/*
 * Which expertd holds which tiles, by their Hellos, and whether together they hold all that the
 * stage's layers need. Any thread may ask; it looks again only when some link's state or Hello
 * has changed.
 */
#ifndef TRUNK_COVERAGE_H
#define TRUNK_COVERAGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/link.h"
#include "proto/tile.h"

#define COVERAGE_PEERS 64

struct coverage_peer {
    struct link *link;
    bool up;               /* answers, and is an expertd of this model */
    struct tile_set tiles; /* of its last Hello, whether it is up or not */
    uint64_t payload_most; /* it takes */
    char why[320];         /* when it is not up */
};

/* What is known at one generation of the links. */
struct coverage_summary {
    uint64_t generation;
    uint64_t needed, covered; /* tiles */
    char missing[512];        /* a sentence about the first tile that nobody holds, or "" */
};

struct coverage {
    const struct shape *shape;
    struct links *links;
    pthread_mutex_t lock;
    struct tile_coverage tiles;
    struct coverage_summary summary;
    size_t peers;
    struct coverage_peer peer[COVERAGE_PEERS];
};

int coverage_open(struct coverage *c, const struct shape *s, const uint32_t layers[2],
                  struct links *ls);
void coverage_close(struct coverage *c); /* fine on a zeroed one */

/* Before the links start. -ENOSPC when there are too many. */
int coverage_add_peer(struct coverage *c, struct link *l);

void coverage_look(struct coverage *c, struct coverage_summary *ret_summary);

/* Copies one peer's entry as of the last look. */
void coverage_peer(struct coverage *c, size_t i, struct coverage_peer *ret_peer);

#endif
