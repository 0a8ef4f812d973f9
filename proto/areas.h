/* A process's memory table as it travels in the answer to Stats. */
#ifndef PROTO_AREAS_H
#define PROTO_AREAS_H

#include "base/memory.h"
#include "proto/msg.h"

/* The memory the reply's areas lie in; must live as long as the reply is used. */
struct areas {
    Kapok__AreaStats area[MEMORY_AREAS];
    Kapok__AreaStats *list[MEMORY_AREAS];
};

/* Lets r->areas point into `a`, with the areas of `m`. */
void areas_write(struct areas *a, const struct memory *m, Kapok__StatsReply *r);

#endif
