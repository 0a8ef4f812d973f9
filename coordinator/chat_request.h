/* The fields of a chat completion's request, checked. */
#ifndef COORDINATOR_CHAT_REQUEST_H
#define COORDINATOR_CHAT_REQUEST_H

#include "coordinator/chat_render.h"
#include "coordinator/params.h"

struct chat_request {
    struct params params; /* first: the common fields are read into it */
    const json_t *messages;
    const json_t *tools;
    bool named_tool; /* tool_choice names a function: the only one that is declared */
    struct chat_options options;
    char named[128];
    bool has_choice;
};

/* Borrows from `body`. */
bool chat_request_read(struct chat_request *c, const json_t *body, struct api_error *e);

#endif
