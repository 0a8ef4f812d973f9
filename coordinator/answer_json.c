/*
 * See the header, and docs/api.md for the `kapok` object.
 *
 * A step's bytes are counted whole for every generation that had rows in it: shared steps are
 * not divided, because the reads could not be either.
 */
#include "coordinator/answer_json.h"

json_t *answer_json_head(const struct answer *a, const char *object)
{
    return json_pack("{s:s,s:s,s:I,s:s}", "id", a->id, "object", object, "created",
                     (json_int_t)a->created, "model", a->api->model);
}

const char *answer_finish_reason(const struct answer_choice *c)
{
    if (!c->ended)
        return NULL;
    return c->end == GENERATION_STOP ? "stop" : c->end == GENERATION_LENGTH ? "length" : NULL;
}

json_t *answer_json_usage(const struct answer *a)
{
    uint64_t generated = 0;
    uint32_t cached = a->choice[0].generation->cached;

    for (uint32_t i = 0; i < a->params.choices; i++)
        generated += a->choice[i].generation->told;
    return json_pack("{s:I,s:I,s:I,s:{s:I}}", "prompt_tokens", (json_int_t)a->prompt,
                     "completion_tokens", (json_int_t)generated, "total_tokens",
                     (json_int_t)(a->prompt + generated), "prompt_tokens_details",
                     "cached_tokens", (json_int_t)cached);
}

static json_t *seconds_json(const struct generation *g)
{
    double started = g->started != 0 ? g->started : g->ended;
    double first = g->first != 0 ? g->first : g->ended;

    return json_pack("{s:f,s:f,s:f}", "queue", started - g->arrived, "prefill", first - started,
                     "decode", g->ended - first);
}

json_t *answer_kapok(const struct answer_choice *c)
{
    const struct generation *g = c->generation;
    json_t *ids = json_array();
    char digest[33];

    for (uint32_t i = 0; i < g->told; i++)
        json_array_append_new(ids, json_integer(g->seq.token[g->prompt + i]));
    digest_text(&g->digest, digest);
    return json_pack("{s:o,s:s,s:{s:I,s:I},s:o,s:I,s:I,s:I}", "token_ids", ids, "logits_digest",
                     digest, "bytes_read", "trunk", (json_int_t)g->trunk_bytes, "experts",
                     (json_int_t)g->expert_bytes, "seconds", seconds_json(g), "cached_tokens",
                     (json_int_t)g->cached, "seed", (json_int_t)g->sampling.seed, "steps",
                     (json_int_t)g->steps);
}

json_t *answer_json_whole(struct answer *a)
{
    json_t *whole = answer_json_head(a, a->kind->object), *choices = json_array();

    for (uint32_t i = 0; i < a->params.choices; i++) {
        json_t *choice = a->kind->whole(&a->choice[i]);

        if (a->params.choices > 1)
            json_object_set_new(choice, "kapok", answer_kapok(&a->choice[i]));
        json_array_append_new(choices, choice);
    }
    json_object_set_new(whole, "choices", choices);
    json_object_set_new(whole, "usage", answer_json_usage(a));
    json_object_set_new(whole, "kapok", answer_kapok(&a->choice[0]));
    return whole;
}
