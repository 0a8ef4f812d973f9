/*
 * One pass through a stage's layers: what the parts of a layer (kda.c, mla.c, feed.c, moe.c
 * ...) share. Owned by the step's thread.
 *
 * The error is sticky: after the first one every part returns without doing anything, so a
 * layer reads like the paper. Scratch is a stack of floats that was taken at start.
 *
 * Activations: [rows][n] fp32; "lane" means every row in lane order, kernels_padded(n) floats.
 */
#ifndef TRUNK_PASS_H
#define TRUNK_PASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "proto/shape.h"
#include "trunk/batch.h"
#include "trunk/routing.h"
#include "trunk/states.h"
#include "trunk/weights.h"

struct pass {
    /* Set once: */
    const struct shape *shape;
    const struct kernels *kernels;
    struct weights *weights;
    struct states *states;
    const struct gather *gather;
    unsigned threads;
    float *scratch;
    size_t scratch_room;
    float *own; /* [threads][own_room] */
    size_t own_room;
    float *source; /* [shape_snapshots(layers) + 1][rows_most][hidden] */
    uint32_t rows_most;

    /* Of this pass: */
    struct batch batch;
    uint32_t sources; /* held in `source`; the running sum is the last of them */
    bool pushed;      /* the last one is empty: a snapshot has just been taken */
    size_t scratch_used;
    int error;
    char reason[320];
};

/* Keeps the first error and its sentence. */
void pass_fail(struct pass *p, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* n floats of scratch, 64-byte aligned; undefined content. Given back by pass_release() to the
 * mark of before. */
float *pass_floats(struct pass *p, size_t n);
size_t pass_mark(const struct pass *p);
void pass_release(struct pass *p, size_t mark);

/* Floats that pass_floats(n) takes. */
size_t pass_room(size_t n);

/* A thread's own floats (a parallel_range's thread). */
float *pass_own(const struct pass *p, unsigned thread);

/* Source i of the attention residuals, [rows][hidden]; the running sum is the last. */
float *pass_source(const struct pass *p, uint32_t i);
float *pass_running(const struct pass *p);

/* The next block of the weights, which must be of this role. False after an error. */
bool pass_block(struct pass *p, enum weights_role role, struct weights_block *ret_block);

#endif
