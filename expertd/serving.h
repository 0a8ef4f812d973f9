/*
 * An expert server as a whole: opened from its options, started, stopped. main.c does little
 * else; tests run several in one process.
 */
#ifndef EXPERTD_SERVING_H
#define EXPERTD_SERVING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/problems.h"

#define SERVING_REGIONS 64

struct serving;

struct serving_options {
    const char *checkpoint; /* served in place, or NULL: */
    const char **region;    /* packed regions */
    size_t regions;
    const char *listen, *secret;
    const char *layers, *experts, *bands; /* of the checkpoint; NULL: all */
    const char *isa;                      /* NULL: the best */
    const char *counts;      /* counts of use across restarts; NULL: none are kept */
    uint64_t memory;         /* bytes for everything */
    uint64_t threads;        /* that compute; 0: one a CPU */
    uint64_t rows, requests; /* of one request; under way at once */
    bool buffered;           /* not O_DIRECT */
    bool unchecked;          /* checksums are not looked at */
};

/* Indexes what is to be served and takes the memory; nothing listens or runs yet. */
int serving_open(struct serving **ret_serving, const struct serving_options *o,
                 struct problems *p);

/* Starts the threads, then listens. */
int serving_start(struct serving *s, struct problems *p);

void serving_close(struct serving *s); /* stops what was started; NULL is fine */

const char *serving_address(const struct serving *s);
uint64_t serving_tiles(const struct serving *s);
bool serving_checks(const struct serving *s); /* is everything that is read checked? */
int serving_counts(const struct serving *s);  /* how loading the counts of use ended */
void serving_print_memory(const struct serving *s, FILE *out);

#endif
