/*
 * The scheduler: generations in, steps out.
 *
 * One thread. Between steps it admits waiting generations (first come, first served, as long as
 * the stages have sequences and positions for them), then puts the next step together: one row
 * for every generation that is decoding, with the drafts proposed for it, and at most
 * `prefill_chunk` rows of prompts, shared evenly among those that are prefilling; who could not
 * be served goes first in the next step. So a long prompt delays the others by a chunk, never
 * by itself. A generation nobody wants is dropped between steps; a step in which half of the
 * rows or more are of such generations is cancelled within a layer (to cancel for less would
 * let one leaving client cost all the others a step).
 *
 * Each generation gets exactly the tokens and logits it would get alone.
 */
#ifndef COORDINATOR_SCHEDULER_H
#define COORDINATOR_SCHEDULER_H

#include "coordinator/generation.h"
#include "coordinator/hub.h"

struct scheduler;

struct scheduler_options {
    struct links *links;
    struct link **stage;
    size_t stages;
    const struct shape *shape;
    uint32_t prefill_chunk; /* rows of prompts in one step */
    uint32_t requests;      /* generations held at once, waiting ones included */
    bool speculate;
    int (*sync)(void *context); /* makes what sinks recorded durable; 0 or -errno; NULL: none */
    void *context;
};

int scheduler_open(struct scheduler **ret_scheduler, const struct scheduler_options *o);
int scheduler_start(struct scheduler *s);
/* Ends every generation as cancelled, and waits for the thread. */
void scheduler_stop(struct scheduler *s);
void scheduler_close(struct scheduler *s);

struct hub *scheduler_hub(const struct scheduler *s);

/* Takes `count` generations of one request, all or none; any thread. -EAGAIN: too many are
 * held. -EPIPE: it is stopping. Those of one call have the same prompt, which runs once. */
int scheduler_submit(struct scheduler *s, struct generation **g, size_t count);

/* Figures for people; any thread. */
struct scheduler_status {
    uint32_t waiting, running, kept;
    uint64_t admitted, finished, cancelled, failed, refused;
    uint64_t prompt_tokens, cached_tokens, generated_tokens;
    uint64_t drafted, accepted;
    uint64_t step_rows;  /* of the step under way; 0: none */
    double step_seconds; /* since it began */
};
void scheduler_status(struct scheduler *s, struct scheduler_status *ret_status);

#endif
