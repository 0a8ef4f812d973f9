/*
 * A generation: one prompt being continued, as the scheduler sees it. A request for n choices
 * is n generations.
 *
 * Its owner fills in the first part, submits it, and may look at the second part only in the
 * functions of its sink, which run on the scheduler's thread, and after `done`, which is the
 * last thing that happens to it: then the owner has it back and closes it.
 */
#ifndef COORDINATOR_GENERATION_H
#define COORDINATOR_GENERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coordinator/digest.h"
#include "coordinator/draft.h"
#include "coordinator/sampler.h"
#include "coordinator/sequence.h"

enum generation_end {
    GENERATION_STOP,   /* the end token, or the sink said so */
    GENERATION_LENGTH, /* as many tokens as asked for */
    GENERATION_CANCELLED,
    /* nobody wanted it any more */ GENERATION_LATE, /* its deadline has passed */
    GENERATION_FAILED,                               /* see the reason */
};

struct generation_sink {
    /* Is it still wanted? Asked often, by the scheduler's thread; must not wait. */
    bool (*wanted)(void *owner);
    /* Tokens were sampled and are about to be told. To be made durable by `sync` of the
     * scheduler's options. */
    void (*record)(void *owner, const uint32_t *tokens, size_t count);
    /* One token, with the logits it was chosen from. `is_end`: it is the end token. True: stop
     * here. */
    bool (*token)(void *owner, uint32_t token, const float *logits, bool is_end);
    /* The end; `reason` is a sentence when it failed. */
    void (*done)(void *owner, enum generation_end end, const char *reason);
};

struct generation {
    /* The owner's. seq.token holds the prompt, seq.count its length. */
    struct sequence seq;
    uint32_t prompt, most; /* prompt tokens; tokens to generate at most */
    struct sampler_params sampling;
    const struct generation_sink *sink;
    void *owner;
    double arrived;           /* monotonic seconds */
    double deadline;          /* the same; 0: none */
    const uint32_t *foretold; /* tokens of the answer known already (a resumed generation) */
    size_t foretold_count;

    /* The scheduler's. */
    uint32_t cached;                    /* prompt tokens that did not have to run */
    uint32_t told;                      /* tokens given to the sink */
    struct digest digest;               /* of their logits */
    uint64_t trunk_bytes, expert_bytes; /* of the steps it took part in */
    uint32_t steps, drafted, accepted;
    double started, first, ended; /* first row, first token, last token; 0: not yet */
    struct draft draft;
    struct generation *leader; /* another choice of the same prompt, which runs it for all */
    uint32_t followers;        /* choices that wait for this one's prompt */
    bool prompt_kept;

    struct generation *next, *prev;
    struct {
        uint32_t rows; /* of its known tokens, from standing on */
        uint32_t draft[DRAFT_MOST], drafts;
        size_t logits; /* index of its first row of logits; unused when it wants none */
        bool wants_logits;
        uint32_t fresh[DRAFT_MOST + 1], freshes;
    } step; /* its share of the step under way */
};

/* Copies the prompt; room for `most` more tokens. NULL when there is no memory. */
struct generation *generation_open(const uint32_t *prompt, uint32_t count, uint32_t most);
void generation_close(struct generation *g);

/* Tokens generated so far. */
static inline uint32_t generation_length(const struct generation *g)
{
    return g->seq.count - g->prompt;
}

#endif
