/*
 * Completions. The prompt is one text, or one array of token ids; several prompts in one
 * request are refused (n asks for several continuations of one).
 */
#include "coordinator/completions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/answer.h"
#include "coordinator/said.h"

#define COMPLETIONS_MOST 16 /* max_tokens when not given, as in OpenAI's API */

struct completion {
    struct params params; /* first: the common fields are read into it */
    const json_t *prompt;
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

static const struct field fields[] = {{"prompt", read_prompt},
                                      {"echo", read_echo},
                                      {"best_of", read_best_of},
                                      {"suffix", read_suffix},
                                      {NULL}};

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

static bool text_prompt(struct api *s, const json_t *v, uint32_t **ret_tokens,
                        size_t *ret_count, struct api_error *e)
{
    if (s->tokenizer == NULL)
        return api_error_set(e, 400, "prompt", "unsupported_value",
                             "'prompt' is text, but the checkpoint has no tokenizer; send an "
                             "array of token ids");
    if (json_string_length(v) == 0)
        return api_error_set(e, 400, "prompt", "invalid_value",
                             "'prompt' must hold at least one token");
    int error = tokenizer_encode(s->tokenizer, json_string_value(v), json_string_length(v),
                                 false, ret_tokens, ret_count);
    if (error != 0)
        return api_error_set(e, 503, "", NULL, "the prompt cannot be tokenized: %s",
                             strerror(-error));
    return true;
}

/* The prompt's tokens, malloc'ed. */
static bool prompt_of(struct api *s, const json_t *v, uint32_t **ret_tokens, size_t *ret_count,
                      struct api_error *e)
{
    uint32_t *tokens;
    size_t count;

    if (v == NULL)
        return api_error_set(e, 400, "prompt", "missing_required_parameter",
                             "'prompt' is missing");
    if (json_is_string(v))
        return text_prompt(s, v, ret_tokens, ret_count, e);
    if (!json_is_array(v))
        return api_error_set(e, 400, "prompt", "invalid_type",
                             "'prompt' must be a string or an array of token ids, found %s",
                             field_kind(v));
    count = json_array_size(v);
    if (count == 0)
        return api_error_set(e, 400, "prompt", "invalid_value",
                             "'prompt' must hold at least one token");
    tokens = malloc(count * sizeof *tokens);
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

static int choice_open(struct answer_choice *c)
{
    c->said = malloc(sizeof(struct said));
    if (c->said == NULL)
        return -ENOMEM;
    said_init(c->said, c->answer->api->tokenizer);
    return 0;
}

static void choice_close(struct answer_choice *c)
{
    if (c->said != NULL)
        said_fini(c->said);
    free(c->said);
}

static json_t *choice_json(const struct answer_choice *c, struct said_piece text, bool ended)
{
    const char *reason = ended ? answer_finish_reason(c) : NULL;

    return json_pack("{s:i,s:s%,s:n,s:o}", "index", (int)c->index, "text", text.text,
                     text.length, "logprobs", "finish_reason",
                     reason != NULL ? json_string(reason) : json_null());
}

static bool choice_token(struct answer_choice *c, uint32_t token, const float *logits,
                         bool is_end)
{
    struct said_piece piece = {"", 0};

    if (!is_end)
        said_add(c->said, token, &piece);
    if (c->answer->streams)
        answer_chunk(c->answer, c->index,
                     json_pack("{s:[o],s:{s:[I]}}", "choices", choice_json(c, piece, false),
                               "kapok", "token_ids", (json_int_t)token));
    return false;
}

static void choice_finish(struct answer_choice *c)
{
    struct said_piece rest = {"", 0};

    said_end(c->said, &rest);
    answer_chunk(c->answer, c->index,
                 json_pack("{s:[o],s:o}", "choices", choice_json(c, rest, true), "kapok",
                           answer_kapok(c)));
}

static json_t *choice_whole(struct answer_choice *c)
{
    struct said_piece rest;

    said_end(c->said, &rest);
    return choice_json(c, said_whole(c->said), true);
}

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
