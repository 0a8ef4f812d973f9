/* What an expertd says of itself: the answers to Hello and Stats. */
#ifndef EXPERTD_REPORT_H
#define EXPERTD_REPORT_H

#include "expertd/dispatch.h"

void report_hello(const struct dispatch *d, struct link_request *r);
void report_stats(const struct dispatch *d, struct link_request *r);

#endif
