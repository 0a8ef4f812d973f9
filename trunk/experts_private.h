/* What the files of the experts share; see experts.h. A *wave* is as many chunks of rows as are
 * asked for at once; nearly always one wave holds all rows. */
#ifndef TRUNK_EXPERTS_PRIVATE_H
#define TRUNK_EXPERTS_PRIVATE_H

#include <pthread.h>

#include "base/queue.h"
#include "trunk/experts.h"

#define EXPERTS_CHUNKS 8   /* of a wave */
#define EXPERTS_ASKS   4   /* under way at once with one peer */
#define EXPERTS_POLL   0.1 /* seconds between looks at who is there */

struct experts_peer;

/* One Compute: some experts, all with the same bands, for the rows of one chunk. */
struct experts_ask {
    struct link_call call;
    Kapok__Request request;
    Kapok__Compute body;
    struct iovec payload;
    struct experts_peer *peer;
    bool busy, cancelled;
    uint32_t chunk;
    uint64_t bands;
    uint16_t *expert; /* [experts] of them */
    uint32_t experts;
    uint32_t *row; /* [rows] of the step that have any of them */
    uint32_t *counts;
    uint32_t rows;
};

struct experts_peer {
    struct coverage_peer known;
    bool failed;    /* it answered with an error of the model; not asked again in this layer */
    uint64_t load;  /* tiles it has been given and not answered */
    uint64_t *todo; /* [EXPERTS_CHUNKS][experts] bands it is to be asked for */
    struct experts_ask ask[EXPERTS_ASKS];
    struct link_call hint;
    Kapok__Request hint_request;
    Kapok__Hint hint_body;
    uint32_t *hinted; /* [experts] */
    bool hinting;
    double straggled; /* seconds, under the lock */
};

struct experts {
    struct experts_options options;
    const struct shape *shape;
    struct queue done; /* of link_call */
    size_t peers;
    struct experts_peer *peer;
    uint64_t generation; /* of the coverage that the peers' entries are from */

    /* Of the layer at hand: */
    struct routing routing;
    const float *z;
    uint32_t first, rows;        /* of the wave */
    uint32_t chunk_rows;         /* of a chunk */
    uint64_t *orphan;            /* [EXPERTS_CHUNKS][experts] bands nobody was found for */
    uint64_t left;               /* tiles of the wave not summed yet */
    bool *chosen;                /* [experts] scratch */
    float *z_room, *weight_room; /* of one payload */
    uint16_t *expert_room;
    uint8_t *payload_room;
    int error; /* of the model, with its sentence */
    char reason[320];

    pthread_mutex_t lock; /* counters and straggled */
    struct experts_counters counters;
};

/* ---- experts_plan.c ---------------------------------------------------------------------- */

/* Bands of (chunk, expert) in one of the tables above. */
static inline uint64_t *experts_place(const struct experts *x, uint64_t *table, uint32_t chunk,
                                      uint32_t expert)
{
    return &table[(size_t)chunk * x->shape->experts + expert];
}

/* Rows of the step that a peer takes in one request. */
uint32_t experts_plan_rows(const struct experts *x, const struct coverage_peer *known);

/* Makes orphans of every tile that the wave's rows need. */
void experts_plan_wave(struct experts *x);

/* Takes in what changed with the peers, and gives every orphan to a peer that is up and holds
 * it. Orphans that no peer could ever be asked for end the layer with an error. */
void experts_plan_assign(struct experts *x);

/* What is there still to be waited for, in words. */
void experts_plan_describe(const struct experts *x, char *text, size_t size);

/* ---- experts_ask.c ----------------------------------------------------------------------- */

/* Sends what peers that are up are to be asked and have room for. */
void experts_ask_send(struct experts *x);

/* Takes one ended ask: adds its sums, or makes orphans of its tiles. */
void experts_ask_end(struct experts *x, struct experts_ask *a, int64_t *sum);

/* Drops asks to peers that are silent where a replica can do all of them. */
void experts_ask_watch(struct experts *x);

#endif
