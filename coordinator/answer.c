/*
 * The life of an answer, see the header: how it begins, how its choices end, what goes out.
 */
#include "coordinator/answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "coordinator/answer_json.h"

static void answer_free(struct answer *a)
{
    for (uint32_t i = 0; i < a->params.choices; i++) {
        a->kind->close(&a->choice[i]);
        generation_close(a->choice[i].generation);
    }
    params_fini(&a->params);
    free(a);
}

static void send_event(struct answer *a, const char *text)
{
    size_t length = strlen(text);
    char *event = malloc(length + 9);

    if (event == NULL)
        return;
    length = (size_t)sprintf(event, "data: %s\n\n", text);
    http_write(a->http, event, length);
    free(event);
}

void answer_chunk(struct answer *a, json_t *chunk)
{
    json_t *whole = answer_json_head(a, a->kind->chunk_object);
    char *text;

    json_object_update(whole, chunk);
    json_decref(chunk);
    text = json_dumps(whole, JSON_COMPACT);
    json_decref(whole);
    if (text != NULL)
        send_event(a, text);
    free(text);
}

/* How the whole ended, as an error; status 0: well. */
static void overall(const struct answer *a, struct api_error *e)
{
    for (uint32_t i = 0; i < a->params.choices; i++) {
        if (a->choice[i].end == GENERATION_FAILED)
            api_error_set(e, 500, "", NULL, "%s", a->reason);
        if (a->choice[i].end == GENERATION_CANCELLED)
            api_error_set(e, 503, "", NULL, "the generation was cancelled");
    }
}

static void end_stream(struct answer *a, const struct api_error *e)
{
    if (e->status != 0) {
        char *text = api_error_text(e);

        if (text != NULL)
            send_event(a, text);
        free(text);
    } else if (a->params.include_usage) {
        answer_chunk(a, json_pack("{s:[],s:o}", "choices", "usage", answer_json_usage(a)));
    }
    send_event(a, "[DONE]");
    http_end(a->http);
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

static void answer_complete(struct answer *a)
{
    struct api_error e = {0};

    overall(a, &e);
    if (a->params.stream)
        end_stream(a, &e);
    else if (e.status != 0)
        api_error_reply(&e, a->http);
    else
        reply_whole(a);
    http_release(a->http);
    answer_free(a);
}

static bool choice_wanted(void *owner)
{
    const struct answer_choice *c = owner;

    return !http_gone(c->answer->http);
}

static bool choice_token(void *owner, uint32_t token, const float *logits, bool is_end)
{
    struct answer_choice *c = owner;

    return c->answer->kind->token(c, token, logits, is_end);
}

static void log_end(const struct answer_choice *c, const char *reason)
{
    static const char *const names[] = {"stop", "length", "cancelled", "failed"};
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
    if (a->params.stream && (end == GENERATION_STOP || end == GENERATION_LENGTH))
        a->kind->finish(c);
    if (--a->open == 0)
        answer_complete(a);
}

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

static int open_choice(struct answer *a, uint32_t index, const uint32_t *prompt, size_t count)
{
    struct answer_choice *c = &a->choice[index];
    struct generation *g = generation_open(prompt, (uint32_t)count, (uint32_t)a->params.most);

    c->answer = a;
    c->index = index;
    c->generation = g;
    if (g == NULL)
        return -ENOMEM;
    g->sampling = a->params.sampling;
    g->sampling.bias = a->params.bias;
    g->sampling.choice = index;
    g->sink = &choice_sink;
    g->owner = c;
    g->arrived = http_arrived(a->http);
    return a->kind->open(c);
}

static struct answer *make(struct api *s, const struct answer_request *q,
                           struct http_request *r)
{
    uint32_t choices = (uint32_t)q->params->choices;
    struct answer *a = calloc(1, sizeof *a + choices * sizeof a->choice[0]);

    if (a == NULL)
        return NULL;
    a->api = s;
    a->kind = q->kind;
    a->http = r;
    a->created = time(NULL);
    a->prompt = (uint32_t)q->count;
    a->params = *q->params;
    a->open = choices;
    make_id(a->id, sizeof a->id, q->kind->id_prefix);
    for (uint32_t i = 0; i < choices; i++) {
        if (open_choice(a, i, q->prompt, q->count) != 0) {
            a->params.stops = 0; /* still the caller's */
            answer_free(a);
            return NULL;
        }
    }
    return a;
}

/* Does the request fit into the context and into the stages' room? */
static bool fits(struct api *s, const struct params *p, size_t count, struct api_error *e)
{
    struct hub_limits limits;
    uint64_t room = s->checkpoint->shape.context;

    hub_limits(scheduler_hub(s->scheduler), &limits);
    if (limits.positions_most > 0 && limits.positions_most < room)
        room = limits.positions_most;
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

bool answer_begin(struct api *s, const struct answer_request *q, struct http_request *r,
                  struct api_error *e)
{
    bool stream = q->params->stream;
    struct answer *a;

    if (!fits(s, q->params, q->count, e))
        return false;
    a = make(s, q, r);
    if (a == NULL)
        return api_error_set(e, 503, "", NULL, "out of memory");
    if (submit(a, e)) {
        if (stream)
            http_stream(r); /* what the scheduler has written already goes out behind it */
        return true;
    }
    a->params.stops = 0;
    answer_free(a);
    return false;
}
