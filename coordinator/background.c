/*
 * The store and the journal's records, see the header. Records in the journal, by "t":
 *   journal  version, model                    the first one
 *   accept   id, path, created, request        a generation is promised
 *   tokens   id, choice, tokens                some of its tokens
 *   end      id, state, response, events       it is over; what it said
 */
#include "coordinator/background.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "coordinator/answer.h"
#include "coordinator/journal.h"
#include "coordinator/routes.h"

#define BACKGROUND_KEPT    256 /* finished ones; older are forgotten */
#define BACKGROUND_VERSION 1

struct background {
    struct journal *journal; /* NULL: none */
    const char *model;
    bool foreign;         /* the journal is of another model or version */
    pthread_mutex_t lock; /* of the list */
    struct record *first; /* newest first */
};

static struct record *find(struct background *b, const char *id)
{
    struct record *r;

    pthread_mutex_lock(&b->lock);
    for (r = b->first; r != NULL && strcmp(r->id, id) != 0; r = r->next)
        ;
    if (r != NULL)
        record_hold(r);
    pthread_mutex_unlock(&b->lock);
    return r;
}

struct record *background_find(struct background *b, const char *id)
{
    return find(b, id);
}

static void add(struct background *b, struct record *r)
{
    pthread_mutex_lock(&b->lock);
    r->next = b->first;
    b->first = record_hold(r);
    pthread_mutex_unlock(&b->lock);
}

static bool is_over(struct record *r)
{
    bool over;

    pthread_mutex_lock(&r->lock);
    over = r->state != RECORD_RUNNING;
    pthread_mutex_unlock(&r->lock);
    return over;
}

/* Forgets the oldest finished ones beyond what is kept. */
static void trim(struct background *b)
{
    struct record **link = &b->first;
    unsigned finished = 0;

    pthread_mutex_lock(&b->lock);
    while (*link != NULL) {
        struct record *r = *link;

        if (is_over(r) && ++finished > BACKGROUND_KEPT) {
            *link = r->next;
            record_release(r);
        } else {
            link = &r->next;
        }
    }
    pthread_mutex_unlock(&b->lock);
}

/* ---- what is written -------------------------------------------------------------------- */

static json_t *accept_json(const struct record *r)
{
    return json_pack("{s:s,s:s,s:s,s:I,s:O}", "t", "accept", "id", r->id, "path", r->path,
                     "created", (json_int_t)r->created, "request", r->request);
}

static json_t *tokens_json(const char *id, size_t choice, const uint32_t *tokens, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_integer(tokens[i]));
    return json_pack("{s:s,s:s,s:I,s:o}", "t", "tokens", "id", id, "choice", (json_int_t)choice,
                     "tokens", list);
}

static json_t *end_json(struct record *r)
{
    json_t *events = json_array(), *j;

    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->events; i++)
        json_array_append_new(
            events, json_pack("[I,s]", (json_int_t)r->event[i].choice, r->event[i].text));
    j = json_pack("{s:s,s:s,s:i,s:O,s:o,s:I}", "t", "end", "id", r->id, "state", (int)r->state,
                  "response", r->response, "events", events, "tokens",
                  (json_int_t)atomic_load(&r->tokens));
    pthread_mutex_unlock(&r->lock);
    return j;
}

int background_accept(struct background *b, struct record *r)
{
    int error = 0;

    if (b->journal != NULL) {
        error = journal_append(b->journal, accept_json(r));
        if (error == 0)
            error = journal_sync(b->journal);
    }
    if (error == 0)
        add(b, r);
    return error;
}

void background_tokens(struct background *b, const struct record *r, uint32_t choice,
                       const uint32_t *tokens, size_t count)
{
    if (b->journal != NULL)
        journal_append(b->journal, tokens_json(r->id, choice, tokens, count));
}

int background_sync(void *background)
{
    struct background *b = background;

    return b->journal != NULL ? journal_sync(b->journal) : 0;
}

void background_finish(struct background *b, struct record *r, enum record_state state,
                       json_t *response)
{
    record_finish(r, state, response);
    if (b->journal != NULL &&
        (journal_append(b->journal, end_json(r)) != 0 || journal_sync(b->journal) != 0))
        log_error("the journal cannot be written id=%s", r->id);
    trim(b);
}

void background_forget(struct background *b, struct record *r)
{
    background_finish(b, r, RECORD_CANCELLED, json_null());
}

/* ---- what is read ----------------------------------------------------------------------- */

static const char *text_of(const json_t *j, const char *key)
{
    const char *text = json_string_value(json_object_get(j, key));

    return text != NULL ? text : "";
}

static void read_accept(struct background *b, const json_t *j)
{
    struct record *r = record_new(text_of(j, "id"), text_of(j, "path"),
                                  json_integer_value(json_object_get(j, "created")),
                                  json_object_get(j, "request"));

    if (r == NULL)
        return;
    add(b, r);
    record_release(r);
}

static void read_end(struct record *r, const json_t *j)
{
    json_int_t state = json_integer_value(json_object_get(j, "state"));
    json_t *event;
    size_t i;

    json_array_foreach(json_object_get(j, "events"), i, event)
    {
        const char *text = json_string_value(json_array_get(event, 1));

        if (text != NULL)
            record_event(r, (uint32_t)json_integer_value(json_array_get(event, 0)), text);
    }
    atomic_store(&r->tokens, (unsigned)json_integer_value(json_object_get(j, "tokens")));
    record_finish(r,
                  state == RECORD_COMPLETED || state == RECORD_FAILED ? (enum record_state)state
                                                                      : RECORD_CANCELLED,
                  json_incref(json_object_get(j, "response")));
}

static void read_record(void *context, const json_t *j)
{
    struct background *b = context;
    const char *t = text_of(j, "t");
    struct record *r;

    if (strcmp(t, "journal") == 0) {
        b->foreign = strcmp(text_of(j, "model"), b->model) != 0 ||
                     json_integer_value(json_object_get(j, "version")) != BACKGROUND_VERSION;
        return;
    }
    if (strcmp(t, "accept") == 0) {
        read_accept(b, j);
        return;
    }
    r = find(b, text_of(j, "id"));
    if (r == NULL)
        return;
    if (strcmp(t, "tokens") == 0)
        record_foretell(r, (size_t)json_integer_value(json_object_get(j, "choice")),
                        json_object_get(j, "tokens"));
    else if (strcmp(t, "end") == 0)
        read_end(r, j);
    record_release(r);
}

/* Writes one record anew, oldest first. */
static void rewrite(struct background *b, struct record *r)
{
    if (r == NULL)
        return;
    rewrite(b, r->next);
    journal_append(b->journal, accept_json(r));
    if (is_over(r)) {
        journal_append(b->journal, end_json(r));
        return;
    }
    for (size_t i = 0; i < RECORD_CHOICES; i++)
        if (r->foretold[i].count > 0)
            journal_append(b->journal,
                           tokens_json(r->id, i, r->foretold[i].token, r->foretold[i].count));
}

static int open_journal(struct background *b, const char *path, struct problems *p)
{
    int error = journal_open(&b->journal, path, read_record, b, p);

    if (error == 0 && b->foreign) {
        problems_add(p, "%s belongs to another model or version; move it away", path);
        error = -EINVAL;
    }
    if (error != 0)
        return error;
    trim(b);
    journal_append(b->journal, json_pack("{s:s,s:i,s:s}", "t", "journal", "version",
                                         BACKGROUND_VERSION, "model", b->model));
    rewrite(b, b->first);
    error = journal_rewrite(b->journal);
    if (error != 0)
        problems_add(p, "%s cannot be written: %s", path, strerror(-error));
    return error;
}

int background_open(struct background **ret_background, const char *path, const char *model,
                    struct problems *p)
{
    struct background *b = calloc(1, sizeof *b);
    int error;

    if (b == NULL)
        return -ENOMEM;
    pthread_mutex_init(&b->lock, NULL);
    b->model = model;
    error = path != NULL ? open_journal(b, path, p) : 0;
    if (error != 0) {
        background_close(b);
        return error;
    }
    *ret_background = b;
    return 0;
}

void background_close(struct background *b)
{
    if (b == NULL)
        return;
    while (b->first != NULL) {
        struct record *r = b->first;

        b->first = r->next;
        record_release(r);
    }
    journal_close(b->journal);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

static void resume_one(struct background *b, struct api *api, struct record *r)
{
    const struct answer_kind *kind = routes_kind(r->path);
    struct api_error e = {0};

    if (kind == NULL)
        api_error_set(&e, 400, "", NULL, "there are no requests for %s any more", r->path);
    if (kind != NULL && kind->begin(api, r->request, NULL, r, &e))
        log_info("generation resumed id=%s", r->id);
    else
        background_finish(b, r, RECORD_FAILED, api_error_json(&e));
}

void background_resume(struct background *b, struct api *api)
{
    for (struct record *r = b->first, *next; r != NULL; r = next) {
        next = r->next;
        if (!is_over(r))
            resume_one(b, api, r);
    }
}
