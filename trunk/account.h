/* What the trunk says of itself: Hello and Stats. Any thread. */
#ifndef TRUNK_ACCOUNT_H
#define TRUNK_ACCOUNT_H

#include <stdint.h>

#include "base/memory.h"
#include "proto/link_server.h"
#include "trunk/coverage.h"
#include "trunk/runner.h"

struct account {
    uint64_t instance; /* random */
    uint64_t payload_most;
    struct runner *runner;
    struct coverage *coverage;
    const struct memory *memory;
};

void account_hello(const struct account *a, struct link_request *q);
void account_stats(const struct account *a, struct link_request *q);

#endif
