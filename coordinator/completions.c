/*
 * Completions. The prompt is one text, or one array of token ids; several prompts in one
 * request are refused (n asks for several continuations of one). Without a tokenizer, prompts
 * are ids and texts are empty; the ids are in the `kapok` object.
 */
#include "coordinator/completions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/logprob.h"
#include "coordinator/wording.h"

#define COMPLETIONS_MOST 16 /* max_tokens when not given, as in OpenAI's API */

struct completion {
    struct params params; /* first: the common fields are read into it */
    const json_t *prompt;
};

/* What a choice has said. */
struct said {
    struct tokenizer_stream stream;
    struct wording wording;
    json_t *logprobs; /* of the whole answer, or NULL */
};

static bool read_prompt(void *into, const char *name, const json_t *v, struct api_error *e)
{
    ((struct completion *)into)->prompt = v;
    return true;
}

static bool read_echo(void *into, const char *name, const json_t *v, struct api_error *e)
{
    bool echo;

    return field_bool(name, v, &echo, e) &&
           field_only(name, !echo, "the prompt is not echoed; leave it out or say false", e);
}

static bool read_best_of(void *into, const char *name, const json_t *v, struct api_error *e)
{
    uint64_t n;

    return field_count(name, v, 1, PARAMS_CHOICES, &n, e) &&
           field_only(name, n == 1, "choices are not ranked; use 'n'", e);
}

static bool read_suffix(void *into, const char *name, const json_t *v, struct api_error *e)
{
    return field_only(name, false, "the model does not fill in the middle", e);
}

static bool read_logprobs(void *into, const char *name, const json_t *v, struct api_error *e)
{
    struct params *p = into;

    p->logprobs = true;
    return field_count(name, v, 0, PARAMS_TOP, &p->top_logprobs, e);
}

static const struct field fields[] = {{"prompt", read_prompt}, {"logprobs", read_logprobs},
                                      {"echo", read_echo},     {"best_of", read_best_of},
                                      {"suffix", read_suffix}, {NULL}};

/* ---- the prompt ------------------------------------------------------------------------- */

static bool ids_of(const json_t *array, uint32_t vocab, uint32_t *out, struct api_error *e)
{
    size_t i;
    json_t *v;

    json_array_foreach((json_t *)array, i, v)
    {
        json_int_t id = json_integer_value(v);

        if (!json_is_integer(v))
            return api_error_set(e, 400, "prompt", "invalid_type",
                                 "'prompt' must be a string or an array of token ids; item %zu "
                                 "is %s",
                                 i, field_kind(v));
        if (id < 0 || id >= vocab)
            return api_error_set(e, 400, "prompt", "invalid_value",
                                 "'prompt': item %zu is %lld, but token ids go from 0 to %u", i,
                                 (long long)id, vocab - 1);
        out[i] = (uint32_t)id;
    }
    return true;
}

static bool prompt_text(struct api *s, const json_t *v, uint32_t **ret_tokens,
                        size_t *ret_count, struct api_error *e)
{
    if (s->tokenizer == NULL)
        return api_error_set(e, 400, "prompt", "unsupported_value",
                             "'prompt' is text, but the checkpoint has no tokenizer; send an "
                             "array of token ids");
    if (tokenizer_encode(s->tokenizer, json_string_value(v), json_string_length(v), false,
                         ret_tokens, ret_count) != 0)
        return api_error_set(e, 503, "", NULL, "out of memory");
    return true;
}

static bool prompt_ids(struct api *s, const json_t *v, uint32_t **ret_tokens, size_t *ret_count,
                       struct api_error *e)
{
    size_t count = json_array_size(v);
    uint32_t *tokens = malloc((count + 1) * sizeof *tokens);

    if (tokens == NULL)
        return api_error_set(e, 503, "", NULL, "out of memory");
    if (!ids_of(v, s->checkpoint->shape.vocab, tokens, e)) {
        free(tokens);
        return false;
    }
    *ret_tokens = tokens;
    *ret_count = count;
    return true;
}

/* The prompt's tokens, malloc'ed. */
static bool prompt_of(struct api *s, const json_t *v, uint32_t **ret_tokens, size_t *ret_count,
                      struct api_error *e)
{
    bool good;

    if (v == NULL)
        return api_error_set(e, 400, "prompt", "missing_required_parameter",
                             "'prompt' is missing");
    if (json_is_string(v))
        good = prompt_text(s, v, ret_tokens, ret_count, e);
    else if (json_is_array(v))
        good = prompt_ids(s, v, ret_tokens, ret_count, e);
    else
        return api_error_set(e, 400, "prompt", "invalid_type",
                             "'prompt' must be a string or an array of token ids, found %s",
                             field_kind(v));
    if (good && *ret_count == 0)
        return api_error_set(e, 400, "prompt", "invalid_value",
                             "'prompt' must hold at least one token");
    return good;
}

/* ---- what a choice says ----------------------------------------------------------------- */

static json_t *logprobs_new(void)
{
    return json_pack("{s:[],s:[],s:[],s:[]}", "tokens", "token_logprobs", "top_logprobs",
                     "text_offset");
}

static int choice_open(struct answer_choice *c)
{
    const struct params *p = &c->answer->params;
    struct said *said = calloc(1, sizeof *said);

    if (said == NULL)
        return -ENOMEM;
    wording_init(&said->wording, p->stop, p->stops);
    if (p->logprobs)
        said->logprobs = logprobs_new();
    c->said = said;
    return 0;
}

static void choice_close(struct answer_choice *c)
{
    struct said *said = c->said;

    if (said == NULL)
        return;
    wording_fini(&said->wording);
    json_decref(said->logprobs);
    free(said);
}

/* Adds one token to an object of logprobs. */
static void logprobs_add(json_t *into, const struct answer_choice *c, uint32_t token,
                         const float *logits)
{
    const struct api *s = c->answer->api;
    const struct said *said = c->said;
    struct logprob_entry top[PARAMS_TOP];
    uint32_t count = (uint32_t)c->answer->params.top_logprobs;
    double own = logprob_pick(logits, s->checkpoint->shape.vocab, token, top, count);
    json_t *likeliest = json_object();

    for (uint32_t i = 0; i < count; i++) {
        json_t *text = logprob_text(s->tokenizer, top[i].token);

        json_object_set_new(likeliest, json_string_value(text), json_real(top[i].logprob));
        json_decref(text);
    }
    json_array_append_new(json_object_get(into, "tokens"), logprob_text(s->tokenizer, token));
    json_array_append_new(json_object_get(into, "token_logprobs"), json_real(own));
    json_array_append_new(json_object_get(into, "top_logprobs"), likeliest);
    json_array_append_new(json_object_get(into, "text_offset"),
                          json_integer((json_int_t)said->wording.length));
}

static json_t *choice_json(const struct answer_choice *c, json_t *text, json_t *logprobs,
                           bool ended)
{
    const char *reason = ended ? answer_finish_reason(c) : NULL;

    return json_pack("{s:i,s:o,s:o,s:o}", "index", (int)c->index, "text",
                     text != NULL ? text : json_string(""), "logprobs",
                     logprobs != NULL ? logprobs : json_null(), "finish_reason",
                     reason != NULL ? json_string(reason) : json_null());
}

/* Adds the token's text; true when a stop string ends it. */
static bool say(struct answer_choice *c, uint32_t token)
{
    struct said *said = c->said;
    const struct tokenizer *t = c->answer->api->tokenizer;
    const uint8_t *bytes;
    size_t length;
    bool stopped;
    char *text;

    if (t == NULL || tokenizer_is_control(t, token))
        return false; /* control tokens say nothing */
    bytes = tokenizer_bytes(t, token, &length);
    text = malloc(tokenizer_stream_room(length));
    if (text == NULL)
        return true;
    length = tokenizer_stream_push(&said->stream, bytes, length, text);
    stopped = wording_add(&said->wording, text, length);
    free(text);
    return stopped;
}

static bool choice_token(struct answer_choice *c, uint32_t token, const float *logits,
                         bool is_end)
{
    struct said *said = c->said;
    size_t before = said->wording.released;
    json_t *logprobs = NULL;
    bool stopped;

    if (said->logprobs != NULL) {
        logprobs_add(said->logprobs, c, token, logits);
        logprobs = logprobs_new();
        logprobs_add(logprobs, c, token, logits);
    }
    stopped = !is_end && say(c, token);
    if (c->answer->streams)
        answer_chunk(c->answer, c->index,
                     json_pack("{s:[o],s:{s:[I]}}", "choices",
                               choice_json(c, wording_since(&said->wording, before),
                                           json_incref(logprobs), false),
                               "kapok", "token_ids", (json_int_t)token));
    json_decref(logprobs);
    return stopped;
}

/* What is still held back comes out. */
static void say_rest(struct said *said)
{
    char rest[8];
    size_t n = tokenizer_stream_end(&said->stream, rest);

    if (n > 0)
        wording_add(&said->wording, rest, n);
    wording_end(&said->wording);
}

static void choice_finish(struct answer_choice *c)
{
    struct said *said = c->said;
    size_t before = said->wording.released;

    say_rest(said);
    answer_chunk(c->answer, c->index,
                 json_pack("{s:[o],s:o}", "choices",
                           choice_json(c, wording_since(&said->wording, before), NULL, true),
                           "kapok", answer_kapok(c)));
}

static json_t *choice_whole(struct answer_choice *c)
{
    struct said *said = c->said;

    say_rest(said);
    return choice_json(c, wording_since(&said->wording, 0), json_incref(said->logprobs), true);
}

/* ---- the request ------------------------------------------------------------------------ */

static bool begin(struct api *s, const json_t *body, struct http_request *r,
                  struct record *record, struct api_error *e);

static const struct answer_kind kind = {
    .object = "text_completion",
    .chunk_object = "text_completion",
    .id_prefix = "cmpl-",
    .path = "/v1/completions",
    .begin = begin,
    .open = choice_open,
    .close = choice_close,
    .token = choice_token,
    .finish = choice_finish,
    .whole = choice_whole,
};

static bool read(struct api *s, const json_t *body, struct completion *c, struct api_error *e)
{
    const struct field *tables[] = {params_fields, fields};

    if (!field_object(body, c, tables, 2, e) || !params_model(&c->params, s->model, e) ||
        !params_finish(&c->params, e))
        return false;
    if (c->params.stops > 0 && s->tokenizer == NULL)
        return api_error_set(e, 400, "stop", "unsupported_value",
                             "'stop' is text, but the checkpoint has no tokenizer");
    if (c->params.most == 0)
        c->params.most = COMPLETIONS_MOST;
    return true;
}

static bool begin(struct api *s, const json_t *body, struct http_request *r,
                  struct record *record, struct api_error *e)
{
    struct completion c = {0};
    uint32_t *tokens = NULL;
    size_t count = 0;
    bool begun;

    params_init(&c.params, s->checkpoint->shape.vocab);
    begun = read(s, body, &c, e) && prompt_of(s, c.prompt, &tokens, &count, e) &&
            answer_begin(s,
                         &(struct answer_request){.kind = &kind,
                                                  .params = &c.params,
                                                  .prompt = tokens,
                                                  .count = count,
                                                  .body = body,
                                                  .http = r,
                                                  .record = record},
                         e);
    if (!begun)
        params_fini(&c.params);
    free(tokens);
    return begun;
}

const struct answer_kind *completions_kind(void)
{
    return &kind;
}
