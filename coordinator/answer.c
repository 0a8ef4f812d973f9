/*
 * The life of an answer, see the header: how it begins, how its choices end, what goes out.
 */
#include "coordinator/answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/jsontext.h"
#include "base/log.h"
#include "base/thread.h"
#include "coordinator/answer_json.h"

static void answer_free(struct answer *a)
{
    for (uint32_t i = 0; i < a->params.choices; i++) {
        a->kind->close(&a->choice[i]);
        generation_close(a->choice[i].generation);
    }
    params_fini(&a->params);
    if (a->record != NULL)
        record_release(a->record);
    free(a);
}

static void send_event(struct answer *a, uint32_t choice, const char *text)
{
    size_t length = strlen(text);
    char *event;

    if (a->record != NULL) {
        record_event(a->record, choice, text);
        return;
    }
    event = malloc(length + 9);
    if (event == NULL)
        return;
    length = (size_t)sprintf(event, "data: %s\n\n", text);
    http_write(a->http, event, length);
    free(event);
}

void answer_chunk(struct answer *a, uint32_t choice, json_t *chunk)
{
    json_t *whole = answer_json_head(a, a->kind->chunk_object);
    char *text;

    json_object_update(whole, chunk);
    json_decref(chunk);
    text = json_dumps(whole, JSON_COMPACT);
    json_decref(whole);
    if (text != NULL)
        send_event(a, choice, text);
    free(text);
}

/* How the whole ended, as an error; status 0: well. */
static void overall(const struct answer *a, struct api_error *e)
{
    for (uint32_t i = 0; i < a->params.choices; i++) {
        if (a->choice[i].end == GENERATION_FAILED)
            api_error_set(e, 500, "", NULL, "%s", a->reason);
        if (a->choice[i].end == GENERATION_LATE)
            api_error_set(e, 504, "deadline", "deadline_passed",
                          "the request's deadline of %g seconds has passed",
                          a->params.deadline);
        if (a->choice[i].end == GENERATION_CANCELLED)
            api_error_set(e, 503, "", NULL, "the generation was cancelled");
    }
}

/* The last chunks of a stream: what went wrong, or the usage. */
static void send_last(struct answer *a, const struct api_error *e)
{
    if (e->status != 0) {
        char *text = api_error_text(e);

        if (text != NULL)
            send_event(a, 0, text);
        free(text);
    } else if (a->params.include_usage) {
        answer_chunk(a, 0, json_pack("{s:[],s:o}", "choices", "usage", answer_json_usage(a)));
    }
}

static void reply_whole(struct answer *a)
{
    json_t *whole = answer_json_whole(a);
    char *text = json_dumps(whole, JSON_COMPACT);

    json_decref(whole);
    http_reply(a->http, 200, "application/json", text != NULL ? text : "",
               text != NULL ? strlen(text) : 0, NULL);
    free(text);
}

/* A background generation's end. One that is cut short by our own end goes on after the next
 * start, so that is no end to note. */
static void end_record(struct answer *a, const struct api_error *e)
{
    enum record_state state = RECORD_COMPLETED;
    json_t *response;

    for (uint32_t i = 0; i < a->params.choices; i++)
        if (a->choice[i].end == GENERATION_CANCELLED)
            state = RECORD_CANCELLED;
    if (state == RECORD_CANCELLED && !atomic_load(&a->record->cancel))
        return;
    if (state == RECORD_COMPLETED && e->status != 0)
        state = RECORD_FAILED;
    send_last(a, e);
    response = state == RECORD_FAILED ? api_error_json(e) : answer_json_whole(a);
    background_finish(a->api->background, a->record, state, response);
}

static void answer_complete(struct answer *a)
{
    struct api_error e = {0};

    overall(a, &e);
    if (a->record != NULL) {
        end_record(a, &e);
        answer_free(a);
        return;
    }
    if (a->params.stream) {
        send_last(a, &e);
        send_event(a, 0, "[DONE]");
        http_end(a->http);
    } else if (e.status != 0) {
        api_error_reply(&e, a->http);
    } else {
        reply_whole(a);
    }
    http_release(a->http);
    answer_free(a);
}

static bool choice_wanted(void *owner)
{
    const struct answer_choice *c = owner;

    if (c->answer->record != NULL)
        return !atomic_load(&c->answer->record->cancel);
    return !http_gone(c->answer->http);
}

static void choice_record(void *owner, const uint32_t *tokens, size_t count)
{
    const struct answer_choice *c = owner;
    const struct generation *g = c->generation;
    size_t before = generation_length(g) - count; /* tokens recorded earlier */
    size_t known = g->foretold_count > before ? g->foretold_count - before : 0;

    if (known < count)
        background_tokens(c->answer->api->background, c->answer->record, c->index,
                          tokens + known, count - known);
}

static bool choice_token(void *owner, uint32_t token, const float *logits, bool is_end)
{
    struct answer_choice *c = owner;

    if (c->answer->record != NULL)
        atomic_fetch_add(&c->answer->record->tokens, 1);
    return c->answer->kind->token(c, token, logits, is_end);
}

static void log_end(const struct answer_choice *c, const char *reason)
{
    static const char *const names[] = {"stop", "length", "cancelled", "late", "failed"};
    const struct generation *g = c->generation;

    log_info("generation ended id=%s choice=%u end=%s prompt=%u cached=%u generated=%u "
             "steps=%u seconds=%.3f%s%s",
             c->answer->id, c->index, names[c->end], g->prompt, g->cached, generation_length(g),
             g->steps, g->ended - g->arrived, reason != NULL ? " reason=" : "",
             reason != NULL ? reason : "");
}

static void choice_done(void *owner, enum generation_end end, const char *reason)
{
    struct answer_choice *c = owner;
    struct answer *a = c->answer;

    c->ended = true;
    c->end = end;
    if (reason != NULL && a->reason[0] == 0)
        snprintf(a->reason, sizeof a->reason, "%s", reason);
    log_end(c, reason);
    if (a->streams && (end == GENERATION_STOP || end == GENERATION_LENGTH))
        a->kind->finish(c);
    if (--a->open == 0)
        answer_complete(a);
}

static const struct generation_sink choice_sink_recorded = {
    .wanted = choice_wanted,
    .record = choice_record,
    .token = choice_token,
    .done = choice_done,
};

static const struct generation_sink choice_sink = {
    .wanted = choice_wanted,
    .token = choice_token,
    .done = choice_done,
};

static void make_id(char *out, size_t size, const char *prefix)
{
    uint8_t bytes[12];
    size_t n = (size_t)snprintf(out, size, "%s", prefix);

    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        abort();
    for (size_t i = 0; i < sizeof bytes; i++)
        n += (size_t)snprintf(out + n, size - n, "%02x", bytes[i]);
}

static int open_choice(struct answer *a, uint32_t index, const struct answer_request *q)
{
    struct answer_choice *c = &a->choice[index];
    struct generation *g =
        generation_open(q->prompt, (uint32_t)q->count, (uint32_t)a->params.most);

    c->answer = a;
    c->index = index;
    c->generation = g;
    if (g == NULL)
        return -ENOMEM;
    g->sampling = a->params.sampling;
    g->sampling.bias = a->params.bias;
    g->sampling.choice = index;
    g->sink = a->params.background ? &choice_sink_recorded : &choice_sink;
    g->owner = c;
    g->arrived = q->http != NULL ? http_arrived(q->http) : thread_now();
    if (a->params.deadline > 0)
        g->deadline = g->arrived + a->params.deadline;
    if (q->record != NULL) {
        g->foretold = q->record->foretold[index].token;
        g->foretold_count = q->record->foretold[index].count;
    }
    return a->kind->open(c);
}

/* Who it is, and where what it says goes. */
static void address(struct answer *a, const struct answer_request *q)
{
    a->streams = q->params->stream || q->params->background;
    if (q->record != NULL) {
        a->record = record_hold(q->record);
        a->created = q->record->created;
        memcpy(a->id, q->record->id, sizeof a->id);
        return;
    }
    a->http = q->http;
    a->created = time(NULL);
    make_id(a->id, sizeof a->id, q->kind->id_prefix);
}

static void discard(struct answer *a)
{
    a->params.stops = 0; /* still the caller's */
    answer_free(a);
}

static struct answer *make(struct api *s, const struct answer_request *q)
{
    uint32_t choices = (uint32_t)q->params->choices;
    struct answer *a = calloc(1, sizeof *a + choices * sizeof a->choice[0]);

    if (a == NULL)
        return NULL;
    a->api = s;
    a->kind = q->kind;
    a->prompt = (uint32_t)q->count;
    a->params = *q->params;
    a->open = choices;
    address(a, q);
    for (uint32_t i = 0; i < choices; i++) {
        if (open_choice(a, i, q) != 0) {
            discard(a);
            return NULL;
        }
    }
    return a;
}

uint64_t answer_room(struct api *s)
{
    struct hub_limits limits;
    uint64_t room = s->checkpoint->shape.context;

    hub_limits(scheduler_hub(s->scheduler), &limits);
    if (limits.positions_most > 0 && limits.positions_most < room)
        room = limits.positions_most;
    return room;
}

/* Does the request fit? */
static bool fits(struct api *s, const struct params *p, size_t count, struct api_error *e)
{
    uint64_t room = answer_room(s);

    if (count + p->most <= room)
        return true;
    return api_error_set(e, 400, count >= room ? "prompt" : "max_tokens",
                         "context_length_exceeded",
                         "the context holds %llu tokens, but the request asks for %llu: %zu of "
                         "the prompt and %llu to generate",
                         (unsigned long long)room, (unsigned long long)(count + p->most), count,
                         (unsigned long long)p->most);
}

static bool submit(struct answer *a, struct api_error *e)
{
    struct generation *g[PARAMS_CHOICES];
    int error;

    for (uint32_t i = 0; i < a->params.choices; i++)
        g[i] = a->choice[i].generation;
    error = scheduler_submit(a->api->scheduler, g, a->params.choices);
    if (error == -EAGAIN)
        return api_error_set(e, 429, "", "queue_full",
                             "too many requests are waiting; try again later");
    if (error != 0)
        return api_error_set(e, 503, "", NULL, "the server is stopping");
    return true;
}

/* Notes a new background generation durably; its answer feeds the record from now on. */
static bool accept_background(struct answer *a, const struct answer_request *q,
                              struct api_error *e)
{
    json_t *body = json_copy((json_t *)q->body);
    int error = -ENOMEM;

    json_object_set_new(body, "seed", json_integer((json_int_t)a->params.sampling.seed));
    a->record = record_new(a->id, a->kind->path, a->created, body);
    json_decref(body);
    if (a->record != NULL)
        error = background_accept(a->api->background, a->record);
    if (error == 0)
        return true;
    return api_error_set(e, 503, "background", NULL, "the generation cannot be noted: %s",
                         strerror(-error));
}

/* The client of a background generation gets its id, or its events. */
static void introduce(struct record *record, struct http_request *r, bool stream)
{
    if (stream) {
        record_watch(record, r, NULL);
    } else {
        json_t *j = record_json(record);
        char *text = json_dumps(j, JSON_COMPACT);

        json_decref(j);
        http_reply(r, 202, "application/json", text != NULL ? text : "{}",
                   text != NULL ? strlen(text) : 2, NULL);
        http_release(r);
        free(text);
    }
    record_release(record);
}

bool answer_begin(struct api *s, const struct answer_request *q, struct api_error *e)
{
    bool stream = q->params->stream, background = q->params->background;
    struct record *record = NULL;
    struct answer *a;

    if (!fits(s, q->params, q->count, e))
        return false;
    a = make(s, q);
    if (a == NULL)
        return api_error_set(e, 503, "", NULL, "out of memory");
    if (background && a->record == NULL && !accept_background(a, q, e)) {
        discard(a);
        return false;
    }
    if (background && q->http != NULL)
        record = record_hold(a->record);
    if (!submit(a, e)) {
        if (record != NULL) {
            background_forget(s->background, record);
            record_release(record);
        }
        discard(a);
        return false;
    }
    if (record != NULL)
        introduce(record, q->http, stream);
    else if (stream && q->http != NULL)
        http_stream(q->http); /* what the scheduler has written already goes out behind it */
    return true;
}

void answer_handle(struct api *s, const struct answer_kind *kind, struct http_request *r)
{
    struct problems problems;
    struct api_error e = {0};
    size_t length;
    const char *text = http_body(r, &length);
    json_t *body;
    bool begun = false;

    problems_init(&problems);
    body = jsontext_parse("request body", text, length, &problems);
    if (body == NULL)
        api_error_set(&e, 400, "", "invalid_json", "%s", problems.text);
    else if (!json_is_object(body))
        api_error_set(&e, 400, "", NULL, "the request body must be a JSON object");
    else
        begun = kind->begin(s, body, r, NULL, &e);
    if (!begun) {
        api_error_reply(&e, r);
        http_release(r);
    }
    json_decref(body);
}
