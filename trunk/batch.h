/*
 * The rows of a step, brought into an order in which those of one sequence are neighbours:
 * a *run* is all rows of one sequence, at consecutive positions. The order never matters to a
 * result; it lets attention work on runs.
 */
#ifndef TRUNK_BATCH_H
#define TRUNK_BATCH_H

#include <stddef.h>
#include <stdint.h>

struct state;

struct batch_run {
    struct state *state;
    uint32_t first, rows; /* of the batch */
    uint32_t position;    /* of the first row */
};

struct batch {
    uint32_t rows, runs;
    struct batch_run *run;
};

#endif
