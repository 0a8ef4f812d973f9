/*
 * An expert server as a whole: opened from its options, started, stopped. main.c does little
 * else; tests run several in one process.
 */
#ifndef EXPERTD_SERVICE_H
#define EXPERTD_SERVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/problems.h"

struct service;

struct service_options {
    const char *checkpoint, *listen, *secret;
    const char *layers, *experts, *bands; /* NULL: all */
    const char *isa;                      /* NULL: the best */
    uint64_t memory;                      /* bytes for everything */
    uint64_t threads;                     /* that compute; 0: one a CPU */
    uint64_t rows, requests;              /* of one request; under way at once */
    bool buffered;
};

/* Indexes the checkpoint and takes the memory; nothing listens or runs yet. */
int service_open(struct service **ret_service, const struct service_options *o,
                 struct problems *p);

/* Starts the threads, then listens. */
int service_start(struct service *s, struct problems *p);

void service_close(struct service *s); /* stops what was started; NULL is fine */

const char *service_address(const struct service *s);
uint64_t service_tiles(const struct service *s);
void service_print_memory(const struct service *s, FILE *out);

#endif
