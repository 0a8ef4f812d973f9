/*
 * The threads that compute: they take tiles whose bytes have arrived, in the order of arrival,
 * and add them up.
 *
 * Each worker adds into a sum of its own, for one job at a time; it hands that over when it
 * turns to another job, and whoever finishes a job collects the rest. Sums are integers, so
 * none of this can be seen in the result.
 */
#ifndef EXPERTD_CREW_H
#define EXPERTD_CREW_H

#include <pthread.h>
#include <stdbool.h>

#include "base/thread.h"
#include "expertd/job.h"

struct crew_worker {
    struct thread thread;
    struct crew *crew;
    struct ffn ffn;
    uint8_t *scratch;     /* for checksums */
    int64_t *sum;         /* [rows_most][latent], for: */
    struct job *job;      /* NULL: nothing in it */
    pthread_mutex_t lock; /* of job, and of sum while no tile is being computed */
};

struct crew {
    struct job_pool *pool;
    struct tally *tally;
    unsigned workers, started;
    struct crew_worker *worker;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t ready;
    struct want *first, *last;
    bool stopping;
};

/* Bytes the workers take. */
uint64_t crew_bytes(const struct shape *s, unsigned workers, uint32_t rows);

int crew_open(struct crew *c, struct job_pool *pool, const struct kernels *k, unsigned workers,
              struct memory *m);
void crew_close(struct crew *c);

int crew_start(struct crew *c);
void crew_stop(struct crew *c); /* once nothing is under way any more */

/* A want whose entry is ready. Its bands are computed by whoever is free. */
void crew_give(struct crew *c, struct want *w);

/* A want is over, computed or failed; the last one of its job answers. */
void crew_close_want(struct crew *c, struct want *w);

#endif
