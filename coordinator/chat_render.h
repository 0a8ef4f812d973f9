/*
 * A conversation as tokens, by the release's template (model.md section 5).
 *
 * Markers are pushed as control tokens; every text, name and attribute value is tokenized by
 * itself with control tokens off, so nothing a user, a tool or a name says can become one.
 * Messages come as the API has them and are checked here: what the template cannot express
 * (an unknown role, an image) is refused by its place in "messages".
 */
#ifndef COORDINATOR_CHAT_RENDER_H
#define COORDINATOR_CHAT_RENDER_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/api_error.h"
#include "coordinator/text/tokenizer.h"

/* The control tokens of the template. */
struct chat_marks {
    uint32_t open, close, sep, end;
};

/* False when the tokenizer does not have them: then there is no chat. */
bool chat_marks_find(const struct tokenizer *t, struct chat_marks *ret_marks);

struct chat_options {
    bool thinking;
    const char *effort;            /* "low", "high", "max"; NULL: no message about it */
    const json_t *tools;           /* the request's array, or NULL */
    const char *tool_choice;       /* "required", "none" or NULL */
    const json_t *response_format; /* of type json_object or json_schema, or NULL */
};

/* All messages and the beginning of the answer; *ret_ids is malloc'ed. */
bool chat_render(struct tokenizer *t, const json_t *messages, const struct chat_options *o,
                 uint32_t **ret_ids, size_t *ret_count, struct api_error *e);

#endif
