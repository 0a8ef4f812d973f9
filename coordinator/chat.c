/*
 * Chat completions: the request rendered by the template, the answer parsed into reasoning,
 * content and tool calls, streamed as deltas or whole.
 *
 * Stop strings are looked for in the content. A tool call is told once it is complete.
 */
#include "coordinator/chat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/chat_reply.h"
#include "coordinator/chat_request.h"
#include "coordinator/logprob.h"
#include "coordinator/wording.h"

#define CHAT_MOST 32768 /* tokens when no maximum is given, if the context has so many */

/* What a choice has said. */
struct chat_said {
    struct chat_reply reply;
    struct wording thought, content;
    size_t calls_told;
    bool begun; /* the delta with the role has gone out */
    json_t *logprobs;
};

static int choice_open(struct answer_choice *c)
{
    const struct answer *a = c->answer;
    struct chat_said *said = calloc(1, sizeof *said);
    struct chat_marks marks;

    if (said == NULL)
        return -ENOMEM;
    chat_marks_find(a->api->tokenizer, &marks);
    chat_reply_init(&said->reply, a->api->tokenizer, &marks, a->params.thinking);
    wording_init(&said->thought, NULL, 0);
    wording_init(&said->content, a->params.stop, a->params.stops);
    if (a->params.logprobs)
        said->logprobs = json_array();
    c->said = said;
    return 0;
}

static void choice_close(struct answer_choice *c)
{
    struct chat_said *said = c->said;

    if (said == NULL)
        return;
    chat_reply_fini(&said->reply);
    wording_fini(&said->thought);
    wording_fini(&said->content);
    json_decref(said->logprobs);
    free(said);
}

static json_t *token_logprob(const struct answer_choice *c, uint32_t token, const float *logits)
{
    const struct api *s = c->answer->api;
    struct logprob_entry top[PARAMS_TOP], own = {.token = token};
    uint32_t count = (uint32_t)c->answer->params.top_logprobs;
    json_t *list = json_array(), *j;

    own.logprob = logprob_pick(logits, s->checkpoint->shape.vocab, token, top, count);
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, logprob_json(s->tokenizer, &top[i]));
    j = logprob_json(s->tokenizer, &own);
    json_object_set_new(j, "top_logprobs", list);
    return j;
}

/* Calls as the API has them; their ids are those of the answer and their place in it. */
static json_t *call_json(const struct answer_choice *c, size_t i, bool streamed)
{
    const struct chat_said *said = c->said;
    const json_t *call = json_array_get(said->reply.calls, i);
    json_t *j =
        json_pack("{s:o,s:s,s:{s:O,s:O}}", "id",
                  json_sprintf("call_%s_%u_%zu", strchr(c->answer->id, '-') + 1, c->index, i),
                  "type", "function", "function", "name", json_object_get(call, "name"),
                  "arguments", json_object_get(call, "arguments"));

    if (streamed)
        json_object_set_new(j, "index", json_integer((json_int_t)i));
    return j;
}

static const char *finish_reason(const struct answer_choice *c)
{
    const struct chat_said *said = c->said;
    const char *reason = answer_finish_reason(c);

    if (reason != NULL && json_array_size(said->reply.calls) > 0 && !said->content.stopped)
        return "tool_calls";
    return reason;
}

/* Moves what the parser found into the texts; true when a stop string ends it. */
static bool absorb(struct chat_said *said)
{
    struct chat_text *thought = &said->reply.thought, *content = &said->reply.content;

    if (thought->length > 0)
        wording_add(&said->thought, thought->bytes, thought->length);
    if (content->length > 0)
        wording_add(&said->content, content->bytes, content->length);
    chat_reply_taken(&said->reply);
    return said->content.stopped || said->reply.failed;
}

struct chat_mark {
    size_t thought, content;
};

static struct chat_mark mark(const struct chat_said *said)
{
    return (struct chat_mark){said->thought.released, said->content.released};
}

/* What is new since `before`, as a delta. */
static json_t *delta_json(const struct answer_choice *c, struct chat_mark before)
{
    struct chat_said *said = c->said;
    json_t *delta = json_object();

    if (!said->begun) {
        json_object_set_new(delta, "role", json_string("assistant"));
        json_object_set_new(delta, "content", json_string(""));
    }
    said->begun = true;
    if (said->thought.released > before.thought)
        json_object_set_new(delta, "reasoning_content",
                            wording_since(&said->thought, before.thought));
    if (said->content.released > before.content)
        json_object_set_new(delta, "content", wording_since(&said->content, before.content));
    if (said->calls_told < json_array_size(said->reply.calls)) {
        json_t *calls = json_array();

        while (said->calls_told < json_array_size(said->reply.calls))
            json_array_append_new(calls, call_json(c, said->calls_told++, true));
        json_object_set_new(delta, "tool_calls", calls);
    }
    return delta;
}

static json_t *chunk_choice(const struct answer_choice *c, json_t *delta, json_t *logprob,
                            const char *reason)
{
    return json_pack("{s:i,s:o,s:o,s:o}", "index", (int)c->index, "delta", delta, "logprobs",
                     logprob != NULL ? json_pack("{s:[O]}", "content", logprob) : json_null(),
                     "finish_reason", reason != NULL ? json_string(reason) : json_null());
}

static bool choice_token(struct answer_choice *c, uint32_t token, const float *logits,
                         bool is_end)
{
    struct chat_said *said = c->said;
    struct chat_mark before = mark(said);
    json_t *logprob = NULL;
    bool stopped;

    if (said->logprobs != NULL) {
        logprob = token_logprob(c, token, logits);
        json_array_append(said->logprobs, logprob);
    }
    chat_reply_add(&said->reply, token);
    stopped = absorb(said);
    if (c->answer->streams)
        answer_chunk(c->answer, c->index,
                     json_pack("{s:[o],s:{s:[I]}}", "choices",
                               chunk_choice(c, delta_json(c, before), logprob, NULL), "kapok",
                               "token_ids", (json_int_t)token));
    json_decref(logprob);
    return stopped;
}

static void say_rest(struct chat_said *said)
{
    chat_reply_end(&said->reply);
    absorb(said);
    wording_end(&said->thought);
    wording_end(&said->content);
}

static void choice_finish(struct answer_choice *c)
{
    struct chat_said *said = c->said;
    struct chat_mark before = mark(said);

    say_rest(said);
    answer_chunk(c->answer, c->index,
                 json_pack("{s:[o],s:o}", "choices",
                           chunk_choice(c, delta_json(c, before), NULL, finish_reason(c)),
                           "kapok", answer_kapok(c)));
}

static json_t *message_json(struct answer_choice *c)
{
    struct chat_said *said = c->said;
    json_t *message = json_pack(
        "{s:s,s:o,s:n}", "role", "assistant", "content",
        said->content.length > 0 ? wording_since(&said->content, 0) : json_null(), "refusal");

    if (said->thought.length > 0)
        json_object_set_new(message, "reasoning_content", wording_since(&said->thought, 0));
    if (json_array_size(said->reply.calls) > 0) {
        json_t *calls = json_array();

        for (size_t i = 0; i < json_array_size(said->reply.calls); i++)
            json_array_append_new(calls, call_json(c, i, false));
        json_object_set_new(message, "tool_calls", calls);
    }
    return message;
}

static json_t *choice_whole(struct answer_choice *c)
{
    struct chat_said *said = c->said;
    const char *reason;
    json_t *logprobs;

    say_rest(said);
    reason = finish_reason(c);
    logprobs =
        said->logprobs != NULL ? json_pack("{s:O}", "content", said->logprobs) : json_null();
    return json_pack("{s:i,s:o,s:o,s:o}", "index", (int)c->index, "message", message_json(c),
                     "logprobs", logprobs, "finish_reason",
                     reason != NULL ? json_string(reason) : json_null());
}

static bool begin(struct api *s, const json_t *body, struct http_request *r,
                  struct record *record, struct api_error *e);

static const struct answer_kind kind = {
    .object = "chat.completion",
    .chunk_object = "chat.completion.chunk",
    .id_prefix = "chatcmpl-",
    .path = "/v1/chat/completions",
    .begin = begin,
    .open = choice_open,
    .close = choice_close,
    .token = choice_token,
    .finish = choice_finish,
    .whole = choice_whole,
};

static bool prepare(struct api *s, const json_t *body, struct chat_request *c,
                    struct api_error *e)
{
    if (s->tokenizer == NULL)
        return api_error_set(e, 400, "messages", "unsupported_value",
                             "the checkpoint has no tokenizer: there is no chat, only "
                             "/v1/completions with token ids");
    if (!chat_request_read(c, body, e) || !params_model(&c->params, s->model, e) ||
        !params_finish(&c->params, e))
        return false;
    c->params.thinking = c->options.thinking;
    return true;
}

/* As many tokens as there is room for, when the request does not say. */
static void choose_most(struct api *s, struct params *p, size_t prompt)
{
    uint64_t room = answer_room(s);

    if (p->most != 0)
        return;
    p->most = room > prompt ? room - prompt : 1;
    if (p->most > CHAT_MOST)
        p->most = CHAT_MOST;
}

static bool begin(struct api *s, const json_t *body, struct http_request *r,
                  struct record *record, struct api_error *e)
{
    struct chat_request c = {0};
    uint32_t *tokens = NULL;
    size_t count = 0;
    bool begun = false;

    params_init(&c.params, s->checkpoint->shape.vocab);
    if (prepare(s, body, &c, e) &&
        chat_render(s->tokenizer, c.messages, &c.options, &tokens, &count, e)) {
        choose_most(s, &c.params, count);
        begun = answer_begin(s,
                             &(struct answer_request){.kind = &kind,
                                                      .params = &c.params,
                                                      .prompt = tokens,
                                                      .count = count,
                                                      .body = body,
                                                      .http = r,
                                                      .record = record},
                             e);
    }
    if (!begun)
        params_fini(&c.params);
    free(tokens);
    return begun;
}

const struct answer_kind *chat_kind(void)
{
    return &kind;
}
