/* POST /v1/completions: a raw continuation of text or of token ids. */
#ifndef COORDINATOR_COMPLETIONS_H
#define COORDINATOR_COMPLETIONS_H

#include "coordinator/http.h"
#include "coordinator/service.h"

/* On the HTTP thread; answers now or later, and releases the request. */
void completions_handle(struct service *s, struct http_request *r);

#endif
