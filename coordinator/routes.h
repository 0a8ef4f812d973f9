/* Which request goes where; whether it may. */
#ifndef COORDINATOR_ROUTES_H
#define COORDINATOR_ROUTES_H

#include "coordinator/api.h"
#include "coordinator/http.h"

/* The HTTP server's `handle`; context is the struct api. */
void routes_handle(void *context, struct http_request *r);

#endif
