/*
 * A background generation as clients see it: its events so far, who is watching, how it ended.
 *
 * Held by the store (background.c), by the answer that feeds it, and by nobody else: watchers
 * are HTTP requests in its list. Any thread.
 */
#ifndef COORDINATOR_RECORD_H
#define COORDINATOR_RECORD_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "coordinator/http.h"

#define RECORD_CHOICES 64

enum record_state { RECORD_RUNNING, RECORD_COMPLETED, RECORD_FAILED, RECORD_CANCELLED };

struct record_event {
    char *text;               /* JSON */
    uint32_t choice, ordinal; /* the n-th of its choice, from 0 */
};

/* How many events of each choice somebody has. As an event id: "12", or "12.9" for two choices.
 * A single count would not do: the choices of a resumed generation interleave otherwise. */
struct record_cursor {
    uint32_t seen[RECORD_CHOICES];
};

struct record_watcher {
    struct http_request *request;
    struct record_cursor cursor;
    struct record_watcher *next;
};

/* Tokens known from before a restart. */
struct record_tokens {
    uint32_t *token;
    size_t count, room;
};

struct record {
    char id[48];
    time_t created;
    char path[48]; /* of the request */
    uint32_t choices;
    json_t *request; /* its body, its seed filled in; not changed after the making */
    struct record_tokens foretold[RECORD_CHOICES];
    atomic_int holders;
    atomic_bool cancel; /* DELETE was asked */
    atomic_uint tokens; /* generated so far, all choices */
    struct record *next;

    pthread_mutex_t lock; /* of the rest */
    enum record_state state;
    struct record_event *event;
    struct record_cursor said;
    size_t events, room;
    json_t *response; /* when it has completed; an error object when it has failed */
    struct record_watcher *watchers;
};

struct record *record_new(const char *id, const char *path, time_t created, json_t *request);
struct record *record_hold(struct record *r);
void record_release(struct record *r);

int record_foretell(struct record *r, size_t choice,
                    const json_t *tokens); /* -EINVAL, -ENOMEM */

/* One more event of a choice; goes to all watchers. */
void record_event(struct record *r, uint32_t choice, const char *text);

/* The end; takes the reference to `response`. Ends the watchers' streams. */
void record_finish(struct record *r, enum record_state state, json_t *response);

/* Streams the events after the one with the id `last` (NULL: all) to the request, and those to
 * come; takes it over. */
void record_watch(struct record *r, struct http_request *request, const char *last);

/* id, status, created, tokens, events, each choice's text so far, and the response when there
 * is one. */
json_t *record_json(struct record *r);

const char *record_state_name(enum record_state s);

#endif
