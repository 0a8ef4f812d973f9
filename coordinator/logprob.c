/* See the header. */
#include "coordinator/logprob.h"

#include <math.h>
#include <stdlib.h>

/* Puts a candidate into the list of the best, which is sorted. */
static uint32_t insert(struct logprob_entry *top, uint32_t have, uint32_t count, uint32_t token,
                       double logit)
{
    uint32_t at = have;

    if (have == count && (count == 0 || logit <= top[count - 1].logprob))
        return have;
    if (have < count)
        have++;
    else
        at = count - 1;
    for (; at > 0 && top[at - 1].logprob < logit; at--)
        top[at] = top[at - 1];
    top[at] = (struct logprob_entry){token, logit};
    return have;
}

double logprob_pick(const float *logits, uint32_t vocab, uint32_t token,
                    struct logprob_entry *ret_top, uint32_t count)
{
    double best = -INFINITY, sum = 0, norm;
    uint32_t have = 0;

    for (uint32_t i = 0; i < vocab; i++) {
        best = fmax(best, (double)logits[i]);
        have = insert(ret_top, have, count, i, (double)logits[i]);
    }
    for (uint32_t i = 0; i < vocab; i++)
        sum += exp((double)logits[i] - best);
    norm = best + log(sum);
    for (uint32_t i = 0; i < have; i++)
        ret_top[i].logprob -= norm;
    return (double)logits[token] - norm;
}

json_t *logprob_text(const struct tokenizer *t, uint32_t token)
{
    struct tokenizer_stream stream = {{0}, 0};
    const uint8_t *bytes;
    size_t length, n;
    json_t *text;
    char *out;

    if (t == NULL)
        return json_sprintf("token_id:%u", token);
    bytes = tokenizer_bytes(t, token, &length);
    out = malloc(tokenizer_stream_room(length) + 4);
    if (out == NULL)
        return json_string("");
    n = tokenizer_stream_push(&stream, bytes, length, out);
    n += tokenizer_stream_end(&stream, out + n);
    text = json_stringn(out, n);
    free(out);
    return text;
}

static json_t *bytes_json(const struct tokenizer *t, uint32_t token)
{
    const uint8_t *bytes;
    size_t length;
    json_t *list;

    if (t == NULL)
        return json_null();
    list = json_array();
    bytes = tokenizer_bytes(t, token, &length);
    for (size_t i = 0; i < length; i++)
        json_array_append_new(list, json_integer(bytes[i]));
    return list;
}

json_t *logprob_json(const struct tokenizer *t, const struct logprob_entry *e)
{
    return json_pack("{s:o,s:f,s:o}", "token", logprob_text(t, e->token), "logprob", e->logprob,
                     "bytes", bytes_json(t, e->token));
}
