/*
 * One message of every kind with every field set, for the test of golden bytes and as seeds of
 * the fuzz targets.
 */
#ifndef TESTS_PROTO_SAMPLES_H
#define TESTS_PROTO_SAMPLES_H

#include <stddef.h>

#include "proto/kapok.pb-c.h"

struct samples_request {
    const char *name;
    Kapok__Request message;
};

struct samples_reply {
    const char *name;
    Kapok__Reply message;
};

/* Static memory; filled at the first call. One thread. */
const struct samples_request *samples_requests(size_t *ret_count);
const struct samples_reply *samples_replies(size_t *ret_count);

#endif
