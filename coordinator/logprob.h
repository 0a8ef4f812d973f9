/*
 * Log-probabilities of the model's own distribution: the logarithm of the softmax of the logits
 * as the model gave them, before bias, penalties, temperature and cuts; in double.
 */
#ifndef COORDINATOR_LOGPROB_H
#define COORDINATOR_LOGPROB_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/text/tokenizer.h"

struct logprob_entry {
    uint32_t token;
    double logprob;
};

/* Of `token`, and of the `count` likeliest in order (ties by the lower id). */
double logprob_pick(const float *logits, uint32_t vocab, uint32_t token,
                    struct logprob_entry *ret_top, uint32_t count);

/* A token as text, for people: its bytes, with what is no UTF-8 replaced; "token_id:7" without
 * a tokenizer. A new reference. */
json_t *logprob_text(const struct tokenizer *t, uint32_t token);

/* {"token", "logprob", "bytes"} as chat completions have it. */
json_t *logprob_json(const struct tokenizer *t, const struct logprob_entry *e);

#endif
