/*
 * What a server serves: a checkpoint in place, or packed regions; which model that is, and
 * which tiles together. A part of serving.
 */
#ifndef EXPERTD_SERVING_SOURCES_H
#define EXPERTD_SERVING_SOURCES_H

#include "base/memory.h"
#include "expertd/serving.h"
#include "expertd/source.h"

struct serving_sources {
    struct checkpoint checkpoint; /* when in place */
    struct shape shape;
    uint8_t digest[CHECKPOINT_DIGEST];
    struct tile_set tiles; /* of all sources */
    struct source source[SERVING_REGIONS];
    size_t count;
};

int serving_sources_open(struct serving_sources *s, const struct serving_options *o,
                         struct memory *m, struct problems *p);
void serving_sources_close(struct serving_sources *s);

#endif
