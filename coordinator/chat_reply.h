/*
 * A model's answer in a conversation, parsed token by token (model.md 5.6): what it thinks,
 * what it says, what it calls.
 *
 * Markers are control tokens, so text that looks like one is text. Thinking and content are
 * handed on as they come (whole UTF-8 sequences); a call when it is complete. The result does
 * not depend on how the tokens arrive.
 */
#ifndef COORDINATOR_CHAT_REPLY_H
#define COORDINATOR_CHAT_REPLY_H

#include <jansson.h>

#include "coordinator/chat_render.h"

/* A growing piece of text. */
struct chat_text {
    char *bytes; /* zero-terminated */
    size_t length, room;
};

enum chat_place {
    CHAT_THINK,
    CHAT_RESPONSE,
    CHAT_OUTSIDE, /* between channels; text here is content */
    CHAT_TOOLS,
    CHAT_CALL,
    CHAT_ARGUMENT,
    CHAT_JSON,
    CHAT_OVER,
};

struct chat_reply {
    const struct tokenizer *tokenizer;
    struct chat_marks marks;
    struct tokenizer_stream stream;
    enum chat_place place;
    bool in_tag, closing;
    struct chat_text tag, value, thought, content; /* thought, content: new since taken */
    char *call, *key, *type; /* of the call and the argument that are open */
    json_t *arguments;
    char *raw;     /* arguments given as one JSON text */
    json_t *calls; /* complete ones: {"name", "arguments"} */
    bool failed;   /* there was no memory */
};

void chat_reply_init(struct chat_reply *r, const struct tokenizer *t,
                     const struct chat_marks *marks, bool thinking);
void chat_reply_fini(struct chat_reply *r);

/* One token. Afterwards r->thought and r->content hold what it added; chat_reply_taken() before
 * the next one. */
void chat_reply_add(struct chat_reply *r, uint32_t token);
void chat_reply_taken(struct chat_reply *r);

/* The end: what was held back comes out. */
void chat_reply_end(struct chat_reply *r);

#endif
