/*
 * An answer in the making: one request, its choices, and how what they say goes out.
 *
 * It is made on the HTTP thread by answer_begin(), which submits its generations; from then on
 * the scheduler's thread owns it, until the last choice has ended and the answer is complete.
 * What a token means to the client (text, chat deltas) is the kind's business: a table of
 * functions that completions.c and chat.c each provide.
 */
#ifndef COORDINATOR_ANSWER_H
#define COORDINATOR_ANSWER_H

#include <jansson.h>

#include "coordinator/api.h"
#include "coordinator/generation.h"
#include "coordinator/params.h"

struct answer;

struct answer_choice {
    struct answer *answer;
    uint32_t index;
    struct generation *generation;
    bool ended;
    enum generation_end end;
    void *said; /* the kind's own state of the choice, made by its open */
};

struct answer_kind {
    const char *object, *chunk_object; /* "text_completion", ... */
    const char *id_prefix;             /* "cmpl-" */
    /* State of one choice. -ENOMEM. */
    int (*open)(struct answer_choice *c);
    void (*close)(struct answer_choice *c);
    /* One token; streams what it adds. True: a stop string ended the text. */
    bool (*token)(struct answer_choice *c, uint32_t token, const float *logits, bool is_end);
    /* The choice of a stream has ended: streams the rest and its finish_reason. */
    void (*finish)(struct answer_choice *c);
    /* The choice as a member of "choices" of a whole response. */
    json_t *(*whole)(struct answer_choice *c);
};

struct answer {
    struct api *api;
    const struct answer_kind *kind;
    struct http_request *http;
    char id[48];
    time_t created;
    struct params params; /* owned; params.model is not valid any more */
    uint32_t prompt;      /* tokens of the prompt */
    uint32_t open;        /* choices that have not ended */
    char reason[512];     /* of the first failure */
    struct answer_choice choice[];
};

struct answer_request {
    const struct answer_kind *kind;
    struct params *params;
    const uint32_t *prompt; /* copied */
    size_t count;
};

/* Makes the answer and submits it. Takes over `params` and `r` when it succeeds; otherwise the
 * error is set and both are still the caller's. */
bool answer_begin(struct api *s, const struct answer_request *q, struct http_request *r,
                  struct api_error *e);

/* Sends one chunk of a stream, taking the reference: adds id, object, created and model. */
void answer_chunk(struct answer *a, json_t *chunk);

/* "stop", "length" or NULL. */
const char *answer_finish_reason(const struct answer_choice *c);

/* The `kapok` object of a choice. */
json_t *answer_kapok(const struct answer_choice *c);

#endif
