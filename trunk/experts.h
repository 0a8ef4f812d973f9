/*
 * The routed experts, by asking the expertds: struct gather (routing.h) over the links.
 *
 * Every tile a layer needs is asked of exactly one peer that holds it. Where several do, it
 * goes to the one with the least to do. A request that ends with an error of its connection
 * goes to a replica, or waits until somebody who holds its tiles is up; so does one whose peer
 * falls silent, when a replica is there. An error of the model ends the step with the peer's
 * sentence, unless a replica can be asked. Sums are integers, so nothing of this changes a bit.
 *
 * A step of more rows than peers take in one request is cut into chunks of rows.
 *
 * Used by the step's thread only, but for the counters.
 */
#ifndef TRUNK_EXPERTS_H
#define TRUNK_EXPERTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "trunk/coverage.h"
#include "trunk/routing.h"

struct experts;

struct experts_options {
    const struct shape *shape;
    struct coverage *coverage; /* its peers are asked; all added, the links not started */
    uint32_t rows_most;
    double deadline;               /* seconds of one request */
    bool (*wanted)(void *context); /* is the step still wanted? Asked while waiting */
    void *context;
};

struct experts_counters {                       /* since start */
    uint64_t bytes_read, tiles_hit, tiles_read; /* of the peers, for our requests */
    uint64_t us_waited;                         /* in finish() */
    uint64_t requests, resent;
};

uint64_t experts_bytes(const struct shape *s, size_t peers, uint32_t rows_most);

int experts_open(struct experts **ret_experts, const struct experts_options *o,
                 struct memory *m);
void experts_close(struct experts *x); /* NULL is fine */

struct gather experts_gather(struct experts *x);

/* Waits until all tiles of the stage are held by peers that answer. -ECANCELED when the step is
 * not wanted any more. Logs for whom it waits. */
int experts_await(struct experts *x);

void experts_counters(struct experts *x, struct experts_counters *ret_counters);

/* Seconds that others had been waited for when this peer's answer came last. */
double experts_straggler(struct experts *x, size_t peer);

#endif
