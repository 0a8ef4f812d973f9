/*
 * The tokens of a conversation while it is being rendered: markers by id, texts each tokenized
 * by itself. Private to chat_render*.c. The first error stays and makes everything after it do
 * nothing.
 */
#ifndef COORDINATOR_CHAT_OUT_H
#define COORDINATOR_CHAT_OUT_H

#include "coordinator/chat_render.h"

struct chat_out {
    struct tokenizer *tokenizer;
    struct chat_marks marks;
    struct api_error *error;
    bool thinking;
    uint32_t *id;
    size_t count, room;
};

void chat_out_text(struct chat_out *o, const char *text, size_t length);
void chat_out_string(struct chat_out *o, const char *text);

/* O name, then attributes, then S: begin with the name, add any attributes, then seal. */
void chat_out_open(struct chat_out *o, const char *name);
void chat_out_attribute(struct chat_out *o, const char *key, const char *value);
void chat_out_seal(struct chat_out *o);

/* O name S and C name S. */
void chat_out_begin(struct chat_out *o, const char *name);
void chat_out_close(struct chat_out *o, const char *name);

/* C message S E. */
void chat_out_end_message(struct chat_out *o);

/* A whole message of the system's with a type. */
void chat_out_system(struct chat_out *o, const char *type, const char *body);

/* One message of the conversation (chat_message.c). `index` is its place, for errors. */
void chat_message_assistant(struct chat_out *o, const json_t *message, size_t index);
void chat_message_plain(struct chat_out *o, const json_t *message, const char *role,
                        size_t index);
/* messages[first..end) are tool results; `before` is the assistant's message they answer, or
 * NULL; `counted` results of it came before. */
void chat_message_tools(struct chat_out *o, const json_t *messages, const size_t range[2],
                        const json_t *before, size_t counted);

#endif
