/* GET /metrics: the Prometheus text format, version 0.0.4. */
#ifndef COORDINATOR_METRICS_H
#define COORDINATOR_METRICS_H

#include "coordinator/api.h"

/* malloc'ed; NULL when there is no memory. */
char *metrics_text(struct api *s, unsigned connections);

#endif
