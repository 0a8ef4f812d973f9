/* The JSON that all kinds of answers share. */
#ifndef COORDINATOR_ANSWER_JSON_H
#define COORDINATOR_ANSWER_JSON_H

#include "coordinator/answer.h"

/* An object of id, object, created, model. */
json_t *answer_json_head(const struct answer *a, const char *object);

/* prompt, completion and total tokens of all choices, and cached ones. */
json_t *answer_json_usage(const struct answer *a);

/* The response of an answer that was not streamed. */
json_t *answer_json_whole(struct answer *a);

#endif
