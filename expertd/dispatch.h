/*
 * What comes in: one thread that sorts requests and answers the short ones at once (so that a
 * greeting never waits behind work), and one that opens Compute requests and cuts them into
 * wants for the drives.
 */
#ifndef EXPERTD_DISPATCH_H
#define EXPERTD_DISPATCH_H

#include "base/memory.h"
#include "base/queue.h"
#include "base/thread.h"
#include "expertd/drive.h"
#include "expertd/job.h"

struct dispatch {
    /* The service's, set before dispatch_start(): */
    const struct shape *shape;
    const struct kernels *kernels;
    const struct tile_set *tiles; /* of all drives together, for Hello */
    const struct memory *memory;  /* for Stats */
    struct tally *tally;
    struct job_pool *pool;
    struct crew *crew;
    struct drive *drive;
    size_t drives;
    struct queue *incoming; /* of struct link_request * */
    uint64_t payload_most, instance;
    /* Its own: */
    struct queue computes; /* waiting for an idle job */
    struct thread intake, opener;
};

int dispatch_start(struct dispatch *d, size_t requests);

/* After the incoming queue was closed: refuses what waits, returns when all jobs are done. */
void dispatch_stop(struct dispatch *d);

#endif
