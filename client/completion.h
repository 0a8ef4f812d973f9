/*
 * One streamed completion: the request is made, the pieces are put together, text goes out as
 * it comes. What `kapok run` prints at the end is made of this.
 */
#ifndef CLIENT_COMPLETION_H
#define CLIENT_COMPLETION_H

#include <jansson.h>
#include <stdbool.h>

#include "client/events.h"
#include "client/fetch.h"
#include "client/target.h"

struct completion {
    bool quiet;                  /* text is not written to stdout as it comes */
    bool show_ids;               /* token ids are written instead of text */
    bool progress;               /* a live line on stderr */
    bool (*stop)(void *context); /* see fetch.h */
    /* The result: */
    json_t *ids; /* array */
    char *text;  /* NULL when no text came */
    size_t text_bytes;
    json_t *usage, *kapok; /* of the last chunk; NULL when the stream broke off */
    char finish[32];
    char problem[512]; /* an error that came within the stream */
    bool done;         /* the stream ended as it should */
    /* private */
    struct events events;
    double started, first;
    size_t tokens;
};

void completion_init(struct completion *c);
void completion_fini(struct completion *c);

/* Sends the body and reads the stream to its end; results as of fetch(). */
int completion_run(struct completion *c, const struct target *t, const json_t *body,
                   struct fetch_answer *a);

/* The object `kapok run --json` prints (docs: what scripts may rely on). */
json_t *completion_json(const struct completion *c);

#endif
