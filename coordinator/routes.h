/* Which request goes where; whether it may. */
#ifndef COORDINATOR_ROUTES_H
#define COORDINATOR_ROUTES_H

#include "coordinator/api.h"
#include "coordinator/http.h"

struct answer_kind;

/* The kind of answer that requests to this path get, or NULL. */
const struct answer_kind *routes_kind(const char *path);

/* The HTTP server's `handle`; context is the struct api. */
void routes_handle(void *context, struct http_request *r);

#endif
