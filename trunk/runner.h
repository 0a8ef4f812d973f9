/*
 * The step's thread: runs Open, Close, Fork and Step, one at a time, in the order in which they
 * came. It owns the sequences, the pass and everything the arithmetic works on.
 *
 * A step has a number. The answer of the last one is kept, and a repeat of it is answered from
 * there; a repeat of the one that is running takes over its answer. A step that fails or is
 * cancelled leaves the sequences as its commits made them, as if its rows had never run.
 */
#ifndef TRUNK_RUNNER_H
#define TRUNK_RUNNER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/queue.h"
#include "base/thread.h"
#include "proto/link_server.h"
#include "proto/step_rows.h"
#include "trunk/embed.h"
#include "trunk/experts.h"
#include "trunk/pass.h"
#include "trunk/sizing.h"

struct runner {
    /* Set before runner_start(): */
    const struct shape *shape;
    const struct sizing *sizing;
    struct pass pass;
    struct embed *embed; /* of the first stage, else NULL */
    struct experts *experts;
    float *output;                     /* sizing->output bytes */
    uint32_t *place;                   /* [rows] request row -> batch row */
    uint32_t *run_of, *wanted, *token; /* [rows] */

    /* The thread's: */
    struct thread thread;
    struct queue work; /* of struct link_request */
    bool kept;         /* is `answer` that of step kept_number? */
    uint64_t kept_number;
    Kapok__StepReply answer;
    size_t answer_bytes;

    /* Shared, under the lock: */
    pthread_mutex_t lock;
    bool running;
    uint64_t number;               /* of the running step */
    struct link_request *reply_to; /* whom its answer goes to */
    /* Read without it: */
    atomic_bool cancelled, stopping;
    atomic_uint layer, rows; /* of the running step */
    _Atomic uint64_t steps, rows_done, steps_failed, steps_cancelled, steps_repeated;
};

int runner_start(struct runner *r, size_t requests);
void runner_stop(struct runner *r); /* a step that runs is cancelled */

/* From any thread. What is put is answered by the runner. */
void runner_put(struct runner *r, struct link_request *request);
void runner_cancel(struct runner *r, uint64_t number);

/* "idle", or "step 81, layer 37 of 93". */
void runner_describe(struct runner *r, char *text, size_t size);

/* For the experts: is the running step still wanted? */
bool runner_wants(void *runner);

#endif
