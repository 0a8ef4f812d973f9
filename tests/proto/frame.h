/*
 * Whole messages in memory, for tests of what reads them: a header packed with a payload behind
 * it, at a multiple of 64 as a link hands it out.
 */
#ifndef TESTS_PROTO_FRAME_H
#define TESTS_PROTO_FRAME_H

#include "proto/msg.h"

struct frame {
    uint8_t *bytes;
    size_t length;
    struct msg msg; /* opened */
};

/* The request and `payload_bytes` of room behind it, zeroed; opened. */
void frame_open(struct frame *f, const Kapok__Request *r, size_t payload_bytes);
void frame_close(struct frame *f);

/* The room for the payload. */
void *frame_payload(struct frame *f);

#endif
