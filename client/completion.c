/* A streamed completion: see the header. */
#include "client/completion.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsontext.h"
#include "base/thread.h"

static void add_text(struct completion *c, const char *text)
{
    size_t length = strlen(text);
    char *grown = realloc(c->text, c->text_bytes + length + 1);
    if (!grown)
        return;
    memcpy(grown + c->text_bytes, text, length + 1);
    c->text = grown;
    c->text_bytes += length;
    if (!c->quiet && !c->show_ids) {
        fputs(text, stdout);
        fflush(stdout);
    }
}

static void add_ids(struct completion *c, const json_t *ids)
{
    size_t i;
    const json_t *id;
    json_array_foreach(ids, i, id)
    {
        if (c->show_ids && !c->quiet)
            printf("%s%lld", json_array_size(c->ids) ? "," : "",
                   (long long)json_integer_value(id));
        json_array_append_new(c->ids, json_integer(json_integer_value(id)));
    }
    if (c->show_ids)
        fflush(stdout);
}

static void show_progress(struct completion *c)
{
    double now = thread_now();
    c->tokens++;
    if (c->tokens == 1)
        c->first = now;
    if (!c->progress)
        return;
    double each = c->tokens > 1 ? (now - c->first) / (double)(c->tokens - 1) : now - c->started;
    fprintf(stderr, "\r\033[K[%zu tokens, %.2f s a token]", c->tokens, each);
}

/* Values of the last chunk that replace those before. */
static void keep(json_t **at, json_t *value)
{
    if (!value || json_is_null(value))
        return;
    json_decref(*at);
    *at = json_incref(value);
}

static void take_choice(struct completion *c, const json_t *choice)
{
    const char *text = json_string_value(json_object_get(choice, "text"));
    const char *finish = json_string_value(json_object_get(choice, "finish_reason"));
    if (text && *text)
        add_text(c, text);
    if (finish)
        snprintf(c->finish, sizeof c->finish, "%s", finish);
}

/* The chunk with the totals repeats all ids; the others bring new ones. */
static void take_chunk(struct completion *c, json_t *chunk)
{
    json_t *kapok = json_object_get(chunk, "kapok");
    const json_t *error = json_object_get(chunk, "error");
    if (error) {
        const char *message = json_string_value(json_object_get(error, "message"));
        snprintf(c->problem, sizeof c->problem, "%s", message ? message : "unknown error");
        return;
    }
    take_choice(c, json_array_get(json_object_get(chunk, "choices"), 0));
    keep(&c->usage, json_object_get(chunk, "usage"));
    if (json_object_get(kapok, "logits_digest")) {
        keep(&c->kapok, kapok);
        keep(&c->ids, json_object_get(kapok, "token_ids"));
        return;
    }
    add_ids(c, json_object_get(kapok, "token_ids"));
    if (kapok)
        show_progress(c);
}

static void on_data(void *context, const char *text, size_t length)
{
    struct completion *c = context;
    struct problems p;
    problems_init(&p);
    if (!strcmp(text, "[DONE]")) {
        c->done = true;
        return;
    }
    json_t *chunk = jsontext_parse("stream", text, length, &p);
    if (chunk)
        take_chunk(c, chunk);
    else
        snprintf(c->problem, sizeof c->problem, "%.500s", p.text);
    json_decref(chunk);
}

void completion_init(struct completion *c)
{
    *c = (struct completion){.ids = json_array()};
    events_init(&c->events, on_data, c);
}

void completion_fini(struct completion *c)
{
    events_fini(&c->events);
    json_decref(c->ids);
    json_decref(c->usage);
    json_decref(c->kapok);
    free(c->text);
}

static void on_piece(void *context, const char *bytes, size_t length)
{
    struct completion *c = context;
    events_feed(&c->events, bytes, length);
}

static bool on_stop(void *context)
{
    struct completion *c = context;
    return c->stop && c->stop(c);
}

int completion_run(struct completion *c, const struct target *t, const json_t *body,
                   struct fetch_answer *a)
{
    char *text = json_dumps(body, JSON_COMPACT);
    if (!text)
        return -ENOMEM;
    struct fetch_request r = {
        .url = t->url,
        .path = "/v1/completions",
        .body = text,
        .key = target_key(t),
        .piece = on_piece,
        .context = c,
        .stop = on_stop,
    };
    c->started = thread_now();
    int result = fetch(&r, a);
    if (c->progress)
        fputs("\r\033[K", stderr);
    free(text);
    return result;
}

json_t *completion_json(const struct completion *c)
{
    json_t *j = json_object();
    const json_t *details = json_object_get(c->usage, "prompt_tokens_details");
    const json_t *cached = json_object_get(details, "cached_tokens");
    json_object_set(j, "token_ids", c->ids);
    json_object_set_new(j, "text", c->text ? json_string(c->text) : json_null());
    json_object_set(j, "logits_digest", json_object_get(c->kapok, "logits_digest"));
    json_object_set_new(j, "finish_reason", json_string(c->finish));
    json_object_set_new(
        j, "usage",
        json_pack("{s:O,s:O,s:I}", "prompt_tokens", json_object_get(c->usage, "prompt_tokens"),
                  "completion_tokens", json_object_get(c->usage, "completion_tokens"),
                  "cached_tokens", json_integer_value(cached)));
    json_object_set(j, "bytes_read", json_object_get(c->kapok, "bytes_read"));
    json_object_set(j, "seconds", json_object_get(c->kapok, "seconds"));
    return j;
}
