/* See the header. */
#include "coordinator/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct record *record_new(const char *id, const char *path, time_t created, json_t *request)
{
    struct record *r = calloc(1, sizeof *r);
    json_int_t choices;

    if (r == NULL)
        return NULL;
    snprintf(r->id, sizeof r->id, "%s", id);
    snprintf(r->path, sizeof r->path, "%s", path);
    r->created = created;
    choices = json_integer_value(json_object_get(request, "n"));
    r->choices = choices < 1                ? 1
                 : choices < RECORD_CHOICES ? (uint32_t)choices
                                            : RECORD_CHOICES;
    r->request = json_incref(request);
    atomic_init(&r->holders, 1);
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

struct record *record_hold(struct record *r)
{
    atomic_fetch_add(&r->holders, 1);
    return r;
}

/* All that was to be said has been said. (Not so when it is still running: then the server
 * stops, and the streams break off.) */
static void end_watchers(struct record *r)
{
    static const char done[] = "data: [DONE]\n\n";

    while (r->watchers != NULL) {
        struct record_watcher *w = r->watchers;

        r->watchers = w->next;
        if (r->state != RECORD_RUNNING)
            http_write(w->request, done, sizeof done - 1);
        http_end(w->request);
        http_release(w->request);
        free(w);
    }
}

void record_release(struct record *r)
{
    if (atomic_fetch_sub(&r->holders, 1) != 1)
        return;
    end_watchers(r);
    for (size_t i = 0; i < r->events; i++)
        free(r->event[i].text);
    for (size_t i = 0; i < RECORD_CHOICES; i++)
        free(r->foretold[i].token);
    free(r->event);
    json_decref(r->request);
    json_decref(r->response);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

int record_foretell(struct record *r, size_t choice, const json_t *tokens)
{
    struct record_tokens *t = &r->foretold[choice < RECORD_CHOICES ? choice : 0];
    size_t i;
    json_t *v;

    if (choice >= r->choices || !json_is_array(tokens))
        return -EINVAL;
    json_array_foreach((json_t *)tokens, i, v)
    {
        if (t->count == t->room) {
            size_t room = t->room > 0 ? 2 * t->room : 64;
            uint32_t *bigger = realloc(t->token, room * sizeof *bigger);

            if (bigger == NULL)
                return -ENOMEM;
            t->token = bigger;
            t->room = room;
        }
        t->token[t->count++] = (uint32_t)json_integer_value(v);
    }
    return 0;
}

static struct record_cursor cursor_parse(const char *id)
{
    struct record_cursor c = {0};
    char *end;

    for (size_t i = 0; id != NULL && i < RECORD_CHOICES; i++) {
        unsigned long n = strtoul(id, &end, 10);

        c.seen[i] = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
        id = *end == '.' ? end + 1 : NULL;
    }
    return c;
}

static void cursor_print(const struct record_cursor *c, uint32_t choices, char *out,
                         size_t size)
{
    size_t n = 0;

    out[0] = 0;
    for (uint32_t i = 0; i < choices && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%u", i > 0 ? "." : "", c->seen[i]);
}

/* Writes an event to one who does not have it yet. */
static int tell(const struct record *r, struct record_watcher *w, const struct record_event *e)
{
    char id[RECORD_CHOICES * 11];
    size_t room = strlen(e->text) + sizeof id + 16;
    char *event;
    int length, error;

    if (e->ordinal < w->cursor.seen[e->choice])
        return 0;
    event = malloc(room);
    if (event == NULL)
        return -ENOMEM;
    w->cursor.seen[e->choice] = e->ordinal + 1;
    cursor_print(&w->cursor, r->choices, id, sizeof id);
    length = snprintf(event, room, "id: %s\ndata: %s\n\n", id, e->text);
    error = http_write(w->request, event, (size_t)length);
    free(event);
    return error;
}

/* To everybody who still listens. */
static void tell_watchers(struct record *r, const struct record_event *e)
{
    struct record_watcher **link = &r->watchers;

    while (*link != NULL) {
        struct record_watcher *w = *link;

        if (tell(r, w, e) == 0) {
            link = &w->next;
            continue;
        }
        *link = w->next;
        http_end(w->request);
        http_release(w->request);
        free(w);
    }
}

static bool make_room(struct record *r)
{
    size_t room = r->room > 0 ? 2 * r->room : 64;
    struct record_event *bigger;

    if (r->events < r->room)
        return true;
    bigger = realloc(r->event, room * sizeof *bigger);
    if (bigger == NULL)
        return false;
    r->event = bigger;
    r->room = room;
    return true;
}

void record_event(struct record *r, uint32_t choice, const char *text)
{
    char *copy = strdup(text);

    pthread_mutex_lock(&r->lock);
    if (copy != NULL && choice < r->choices && make_room(r)) {
        struct record_event *e = &r->event[r->events++];

        *e = (struct record_event){copy, choice, r->said.seen[choice]++};
        tell_watchers(r, e);
        copy = NULL;
    }
    pthread_mutex_unlock(&r->lock);
    free(copy);
}

void record_finish(struct record *r, enum record_state state, json_t *response)
{
    pthread_mutex_lock(&r->lock);
    r->state = state;
    r->response = response;
    end_watchers(r);
    pthread_mutex_unlock(&r->lock);
}

void record_watch(struct record *r, struct http_request *request, const char *last)
{
    struct record_watcher *w = calloc(1, sizeof *w);

    http_stream(request);
    if (w == NULL) {
        http_end(request);
        http_release(request);
        return;
    }
    w->request = request;
    w->cursor = cursor_parse(last);
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->events; i++)
        tell(r, w, &r->event[i]);
    w->next = r->watchers;
    r->watchers = w;
    if (r->state != RECORD_RUNNING)
        end_watchers(r);
    pthread_mutex_unlock(&r->lock);
}

const char *record_state_name(enum record_state s)
{
    static const char *const names[] = {"running", "completed", "failed", "cancelled"};

    return names[s];
}

/* Appends what one event says to the texts of its choices. */
static void add_text(json_t *texts, const char *event)
{
    json_t *j = json_loads(event, JSON_ALLOW_NUL, NULL);
    json_t *choice;
    size_t i;

    json_array_foreach(json_object_get(j, "choices"), i, choice)
    {
        size_t index = (size_t)json_integer_value(json_object_get(choice, "index"));
        json_t *text = json_object_get(choice, "text"), *before, *after;

        if (text == NULL)
            text = json_object_get(json_object_get(choice, "delta"), "content");
        if (!json_is_string(text) || index >= RECORD_CHOICES)
            continue;
        while (json_array_size(texts) <= index)
            json_array_append_new(texts, json_string(""));
        before = json_array_get(texts, index);
        after = json_pack("s%+%", json_string_value(before), json_string_length(before),
                          json_string_value(text), json_string_length(text));
        if (after != NULL)
            json_array_set_new(texts, index, after);
    }
    json_decref(j);
}

json_t *record_json(struct record *r)
{
    json_t *j, *texts = json_array();

    pthread_mutex_lock(&r->lock);
    j = json_pack("{s:s,s:s,s:s,s:I,s:I,s:I}", "id", r->id, "object", "kapok.generation",
                  "status", record_state_name(r->state), "created", (json_int_t)r->created,
                  "tokens", (json_int_t)atomic_load(&r->tokens), "events",
                  (json_int_t)r->events);
    for (size_t i = 0; i < r->events; i++)
        add_text(texts, r->event[i].text);
    json_object_set_new(j, "texts", texts);
    json_object_set(j, "response", r->response != NULL ? r->response : json_null());
    pthread_mutex_unlock(&r->lock);
    return j;
}
