/* POST /v1/completions: a raw continuation of text or of token ids. */
#ifndef COORDINATOR_COMPLETIONS_H
#define COORDINATOR_COMPLETIONS_H

#include "coordinator/api.h"
#include "coordinator/http.h"

/* On the HTTP thread; answers now or later, and releases the request. */
void completions_handle(struct api *s, struct http_request *r);

#endif
