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
#include "coordinator/record.h"

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
    const char *path;                  /* of its requests */
    /* Checks a request's body and begins its answer: for a client (`r`) or for a background
     * generation that is resumed (`record`). False: the error is set, nothing is taken. */
    bool (*begin)(struct api *s, const json_t *body, struct http_request *r,
                  struct record *record, struct api_error *e);
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
    struct http_request *http; /* NULL for a background generation, which has a record */
    struct record *record;
    bool streams; /* its tokens go out as chunks */
    char id[48];
    time_t created;
    struct params params; /* owned; params.model is not valid any more */
    uint32_t prompt;      /* tokens of the prompt */
    uint32_t open;        /* choices that have not ended */
    char reason[512];     /* of the first failure */
    struct answer_choice choice[];
};

/* Tokens that fit into the context and into the stages' room. */
uint64_t answer_room(struct api *s);

struct answer_request {
    const struct answer_kind *kind;
    struct params *params;
    const uint32_t *prompt; /* copied */
    size_t count;
    const json_t *body;        /* of the request */
    struct http_request *http; /* NULL: resumed */
    struct record *record;     /* of the one resumed, or NULL */
};

/* Makes the answer and submits it. Takes over `params` and `http` when it succeeds; otherwise
 * the error is set and both are still the caller's. */
bool answer_begin(struct api *s, const struct answer_request *q, struct api_error *e);

/* A client's request for this kind of answer: parses its body, begins, or says what is wrong.
 */
void answer_handle(struct api *s, const struct answer_kind *kind, struct http_request *r);

/* Sends one chunk of a stream, of this choice, taking the reference: adds id, object, created
 * and model. */
void answer_chunk(struct answer *a, uint32_t choice, json_t *chunk);

/* "stop", "length" or NULL. */
const char *answer_finish_reason(const struct answer_choice *c);

/* The `kapok` object of a choice. */
json_t *answer_kapok(const struct answer_choice *c);

#endif
