/* See the header. Defaults: temperature 1, top_p 0.95, one choice. */
#include "coordinator/params.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void params_init(struct params *p, uint32_t vocab)
{
    memset(p, 0, sizeof *p);
    p->vocab = vocab;
    p->choices = 1;
    p->sampling.temperature = 1;
    p->sampling.top_p = 0.95;
    p->sampling.bias = p->bias;
}

void params_fini(struct params *p)
{
    for (size_t i = 0; i < p->stops; i++)
        free(p->stop[i]);
    p->stops = 0;
}

static bool read_model(void *into, const char *name, const json_t *v, struct api_error *e)
{
    struct params *p = into;

    return field_text(name, v, &p->model, e);
}

static bool read_most(void *into, const char *name, const json_t *v, struct api_error *e)
{
    struct params *p = into;
    uint64_t most;

    if (!field_count(name, v, 1, UINT32_MAX / 2, &most, e))
        return false;
    if (p->most != 0 && p->most != most)
        return api_error_set(e, 400, name, "invalid_value",
                             "'max_tokens' and 'max_completion_tokens' differ");
    p->most = most;
    return true;
}

static bool read_choices(void *into, const char *name, const json_t *v, struct api_error *e)
{
    return field_count(name, v, 1, PARAMS_CHOICES, &((struct params *)into)->choices, e);
}

static bool read_temperature(void *into, const char *name, const json_t *v, struct api_error *e)
{
    return field_real(name, v, 0, 2, &((struct params *)into)->sampling.temperature, e);
}

static bool read_top_p(void *into, const char *name, const json_t *v, struct api_error *e)
{
    return field_real(name, v, 0, 1, &((struct params *)into)->sampling.top_p, e);
}

static bool read_min_p(void *into, const char *name, const json_t *v, struct api_error *e)
{
    return field_real(name, v, 0, 1, &((struct params *)into)->sampling.min_p, e);
}

static bool read_top_k(void *into, const char *name, const json_t *v, struct api_error *e)
{
    struct params *p = into;
    uint64_t k;

    if (!field_count(name, v, 0, UINT32_MAX, &k, e))
        return false;
    p->sampling.top_k = (uint32_t)k;
    return true;
}

static bool read_presence(void *into, const char *name, const json_t *v, struct api_error *e)
{
    return field_real(name, v, -2, 2, &((struct params *)into)->sampling.presence, e);
}

static bool read_frequency(void *into, const char *name, const json_t *v, struct api_error *e)
{
    return field_real(name, v, -2, 2, &((struct params *)into)->sampling.frequency, e);
}

static bool read_seed(void *into, const char *name, const json_t *v, struct api_error *e)
{
    struct params *p = into;

    if (!json_is_integer(v))
        return api_error_set(e, 400, name, "invalid_type",
                             "'seed' must be an integer, found %s", field_kind(v));
    p->sampling.seed = (uint64_t)json_integer_value(v);
    p->seeded = true;
    return true;
}

static bool read_stream(void *into, const char *name, const json_t *v, struct api_error *e)
{
    return field_bool(name, v, &((struct params *)into)->stream, e);
}

static bool read_background(void *into, const char *name, const json_t *v, struct api_error *e)
{
    return field_bool(name, v, &((struct params *)into)->background, e);
}

static bool read_include_usage(void *into, const char *name, const json_t *v,
                               struct api_error *e)
{
    return field_bool("stream_options.include_usage", v,
                      &((struct params *)into)->include_usage, e);
}

/* Padding against traffic analysis, which a stream here never has. */
static bool read_obfuscation(void *into, const char *name, const json_t *v, struct api_error *e)
{
    bool wanted;

    return field_bool(name, v, &wanted, e) &&
           field_only("stream_options.include_obfuscation", !wanted,
                      "streams are not obfuscated; leave it out or say false", e);
}

static bool read_stream_options(void *into, const char *name, const json_t *v,
                                struct api_error *e)
{
    static const struct field fields[] = {{"include_usage", read_include_usage},
                                          {"include_obfuscation", read_obfuscation},
                                          {NULL}};
    const struct field *tables[] = {fields};

    if (!json_is_object(v))
        return api_error_set(e, 400, name, "invalid_type",
                             "'stream_options' must be an object, found %s", field_kind(v));
    return field_object(v, into, tables, 1, e);
}

static bool add_stop(struct params *p, const char *name, const json_t *v, struct api_error *e)
{
    const char *text;

    if (!field_text(name, v, &text, e))
        return false;
    if (text[0] == 0 || strlen(text) != json_string_length(v))
        return api_error_set(e, 400, name, "invalid_value",
                             "'stop' must not be empty or hold a zero byte");
    if (p->stops == PARAMS_STOPS)
        return api_error_set(e, 400, name, "invalid_value",
                             "'stop' may hold at most %d strings", PARAMS_STOPS);
    p->stop[p->stops] = strdup(text);
    if (p->stop[p->stops] == NULL)
        return api_error_set(e, 503, name, NULL, "out of memory");
    p->stops++;
    return true;
}

static bool read_stop(void *into, const char *name, const json_t *v, struct api_error *e)
{
    size_t i;
    json_t *item;

    if (!json_is_array(v))
        return add_stop(into, name, v, e);
    json_array_foreach((json_t *)v, i, item)
    {
        if (!add_stop(into, name, item, e))
            return false;
    }
    return true;
}

static bool add_bias(struct params *p, const char *key, const json_t *v, struct api_error *e)
{
    struct sampler_bias *b = &p->bias[p->sampling.biases];
    char *end;
    unsigned long long token = strtoull(key, &end, 10);

    if (key[0] < '0' || key[0] > '9' || *end != 0 || token >= p->vocab)
        return api_error_set(e, 400, "logit_bias", "invalid_value",
                             "'logit_bias': '%.32s' is not a token id below %u", key, p->vocab);
    for (size_t i = 0; i < p->sampling.biases; i++)
        if (p->bias[i].token == token)
            return api_error_set(e, 400, "logit_bias", "invalid_value",
                                 "'logit_bias' names token %llu twice", token);
    if (p->sampling.biases == SAMPLER_BIASES)
        return api_error_set(e, 400, "logit_bias", "invalid_value",
                             "'logit_bias' may name at most %d tokens", SAMPLER_BIASES);
    b->token = (uint32_t)token;
    p->sampling.biases++;
    return field_real("logit_bias", v, -100, 100, &b->bias, e);
}

static bool read_bias(void *into, const char *name, const json_t *v, struct api_error *e)
{
    const char *key;
    json_t *item;

    if (!json_is_object(v))
        return api_error_set(e, 400, name, "invalid_type",
                             "'logit_bias' must be an object, found %s", field_kind(v));
    json_object_foreach((json_t *)v, key, item)
    {
        if (!add_bias(into, key, item, e))
            return false;
    }
    return true;
}

static bool read_deadline(void *into, const char *name, const json_t *v, struct api_error *e)
{
    return field_real(name, v, 0.001, 1e9, &((struct params *)into)->deadline, e);
}

/* Names who asks, for the asker's own books; nothing here depends on it. */
static bool read_label(void *into, const char *name, const json_t *v, struct api_error *e)
{
    const char *text;

    return field_text(name, v, &text, e);
}

static bool read_metadata(void *into, const char *name, const json_t *v, struct api_error *e)
{
    if (!json_is_object(v))
        return api_error_set(e, 400, name, "invalid_type", "'%s' must be an object, found %s",
                             name, field_kind(v));
    return true;
}

const struct field params_fields[] = {
    {"model", read_model},
    {"max_tokens", read_most},
    {"max_completion_tokens", read_most},
    {"n", read_choices},
    {"temperature", read_temperature},
    {"top_p", read_top_p},
    {"top_k", read_top_k},
    {"min_p", read_min_p},
    {"presence_penalty", read_presence},
    {"frequency_penalty", read_frequency},
    {"seed", read_seed},
    {"stop", read_stop},
    {"logit_bias", read_bias},
    {"stream", read_stream},
    {"stream_options", read_stream_options},
    {"background", read_background},
    {"deadline", read_deadline},
    {"user", read_label},
    {"metadata", read_metadata},
    {NULL},
};

bool params_model(const struct params *p, const char *served, struct api_error *e)
{
    if (p->model == NULL)
        return api_error_set(e, 400, "model", "missing_required_parameter",
                             "'model' is missing; this server has '%s'", served);
    if (strcmp(p->model, served) != 0)
        return api_error_set(e, 404, "model", "model_not_found",
                             "the model '%.100s' does not exist; this server has '%s'",
                             p->model, served);
    return true;
}

bool params_finish(struct params *p, struct api_error *e)
{
    if (p->include_usage && !p->stream)
        return api_error_set(e, 400, "stream_options", "invalid_value",
                             "'stream_options' needs 'stream': true");
    if (!p->seeded &&
        getrandom(&p->sampling.seed, sizeof p->sampling.seed, 0) != sizeof p->sampling.seed)
        return api_error_set(e, 500, "", NULL, "the system gave no random seed");
    if (!p->seeded)
        p->sampling.seed &= INT64_MAX; /* so that it can be sent back as JSON */
    return true;
}
