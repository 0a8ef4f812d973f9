/* GET /v1/kapok/status and /ready: what everything is doing, and what is missing. */
#ifndef COORDINATOR_STATUS_H
#define COORDINATOR_STATUS_H

#include <jansson.h>

#include "coordinator/api.h"

/* Everything the status page shows; a new reference. */
json_t *status_json(struct api *s, unsigned connections);

/* {"ready": true} or {"ready": false, "missing": "..."}; *ret_ready says which. */
json_t *status_ready_json(struct api *s, bool *ret_ready);

#endif
