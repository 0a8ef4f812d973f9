/* Which request goes where; whether it may. */
#ifndef COORDINATOR_ROUTES_H
#define COORDINATOR_ROUTES_H

#include "coordinator/http.h"
#include "coordinator/service.h"

/* The HTTP server's `handle`; context is the struct service. */
void routes_handle(void *context, struct http_request *r);

#endif
