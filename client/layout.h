/*
 * Which processes a pipeline on one machine has, and with which command lines.
 *
 * The bands, or the packed regions when there are any, go to the expertds and the layers to the
 * stages as evenly as they go; without --expertds there is one, or one for each region. Of
 * --memory the expertds get an eighth together: a byte of pinned dense weights saves a byte a
 * token, a byte of expert cache saves a quarter of one at best.
 */
#ifndef CLIENT_LAYOUT_H
#define CLIENT_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/options.h"
#include "base/problems.h"
#include "client/child.h"
#include "client/rundir.h"
#include "proto/shape.h"

#define LAYOUT_EXPERTDS 64
#define LAYOUT_STAGES   32

struct layout_options {
    const char *checkpoint, *listen, *isa, *log;
    struct option_list regions; /* packed; none: the checkpoint serves in place */
    uint64_t expertds, stages,
        threads;            /* expertds 0: see above; threads 0: the programs decide */
    uint64_t memory;        /* bytes for everything; 0: the programs decide */
    uint64_t prefill_chunk; /* 0: the coordinator decides */
    bool buffered;
};

struct layout {
    struct layout_options options;
    struct shape shape;
    char programs[512]; /* folder of this program */
    unsigned expertds, stages;
    struct child expertd[LAYOUT_EXPERTDS], stage[LAYOUT_STAGES], coordinator;
};

/* Checks the options against the checkpoint's shape and makes the expertds' command lines. */
int layout_init(struct layout *l, const struct layout_options *o, const struct rundir *d,
                struct problems *p);
void layout_fini(struct layout *l);

/* Once all expertds listen; once all stages listen. */
void layout_stages(struct layout *l, const struct rundir *d);
void layout_coordinator(struct layout *l, const struct rundir *d);

/* Writes all command lines, the next ones' ports as far as they are known. */
void layout_print(struct layout *l, FILE *out);

/* The i-th of all children in the order of starting, NULL past the last. */
struct child *layout_child(struct layout *l, unsigned i);

#endif
