/*
 * Background generations: the store of their records, and their journal.
 *
 * A generation with "background": true lives on when its client leaves. With a journal it also
 * outlives the coordinator: the request is noted before its id is told, tokens before they are
 * told, the end with everything that was said. At the next start the finished ones are there
 * again, and the others are generated anew: what the journal knows of their tokens is proposed
 * as drafts, so that sampling itself confirms every token that was told before, and the logits
 * digest is the same as without the interruption.
 */
#ifndef COORDINATOR_BACKGROUND_H
#define COORDINATOR_BACKGROUND_H

#include <stddef.h>

#include "base/problems.h"
#include "coordinator/record.h"

struct api;
struct background;

/* `path` of the journal, or NULL: records live in memory only. `model`: the digest in hex; a
 * journal of another model is refused. */
int background_open(struct background **ret_background, const char *path, const char *model,
                    struct problems *p);
void background_close(struct background *b);

/* Begins the unfinished ones again, when everything else is open. */
void background_resume(struct background *b, struct api *api);

/* A new one: durable when this returns 0. */
int background_accept(struct background *b, struct record *r);
/* It could not begin after all. */
void background_forget(struct background *b, struct record *r);
/* Tokens of a choice were sampled; durable after background_sync(). */
void background_tokens(struct background *b, const struct record *r, uint32_t choice,
                       const uint32_t *tokens, size_t count);
int background_sync(void *background);
/* The end; takes the reference to `response`. */
void background_finish(struct background *b, struct record *r, enum record_state state,
                       json_t *response);

/* Held for the caller; NULL when there is none. */
struct record *background_find(struct background *b, const char *id);

/* GET /v1/kapok/generations/{id} and .../events; DELETE /v1/kapok/generations/{id}. */
void background_handle_get(struct api *s, struct http_request *r);
void background_handle_delete(struct api *s, struct http_request *r);

#endif
