/*
 * Somebody who asks an expert server, for tests and benchmarks. What cannot go wrong in a test
 * is asserted.
 */
#ifndef TESTS_EXPERTD_ASKER_H
#define TESTS_EXPERTD_ASKER_H

#include <stddef.h>
#include <stdint.h>

#include "proto/compute.h"
#include "proto/link.h"

struct asker {
    struct links *links;
    struct link *link;
    struct queue done;
};

void asker_open(struct asker *a, const char *folder, const char *secret, const char *address);
void asker_close(struct asker *a);

struct asker_call {
    struct link_call call;
    Kapok__Request request;
    Kapok__Compute compute;
    uint8_t *payload;
    struct iovec iov;
};

/* Sends a Compute of this content; it ends into a->done. */
void asker_call_start(struct asker_call *c, struct asker *a, const struct compute *content,
                      uint32_t latent);
void asker_call_close(struct asker_call *c);

/* Sends a Hint and waits for its empty answer. */
int asker_hint(struct asker *a, uint32_t layer, const uint32_t *experts, size_t count);

/* A counter of the server's Stats; -1 when it has none of that name. */
double asker_counter(struct asker *a, const char *name);

#endif
