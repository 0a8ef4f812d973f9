/*
 * A trunk stage as a whole: opened from its options, started, stopped. main.c does little else;
 * tests run several in one process.
 */
#ifndef TRUNK_STAGE_H
#define TRUNK_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/problems.h"

struct stage;

struct stage_options {
    const char *checkpoint, *listen, *secret;
    const char *const *expertd; /* addresses */
    size_t expertds;
    const char *layers;                /* "0-6"; NULL: all */
    const char *isa;                   /* NULL: the best */
    uint64_t memory;                   /* bytes for everything */
    uint64_t ring;                     /* bytes of it for the weights' ring; 0: choose */
    uint64_t threads;                  /* that compute; 0: one a CPU */
    uint64_t sequences, context, rows; /* 0: choose */
    double deadline;                   /* seconds of one request to an expertd */
    bool buffered;
};

/* Indexes the checkpoint and takes the memory; nothing listens or runs yet. */
int stage_open(struct stage **ret_stage, const struct stage_options *o, struct problems *p);

/* Starts the threads, then listens. */
int stage_start(struct stage *s, struct problems *p);

void stage_close(struct stage *s); /* stops what was started; NULL is fine */

const char *stage_address(const struct stage *s);
void stage_print_memory(const struct stage *s, FILE *out);

/* Layers, rows, sequences and positions as they were chosen, for the log. */
void stage_describe(const struct stage *s, char *text, size_t size);

#endif
