/*
 * Which experts the rows of a step chose in one layer, and who adds them up.
 *
 * The trunk's arithmetic knows the experts only through struct gather: experts.c asks the
 * expertds; a test may answer from memory.
 */
#ifndef TRUNK_ROUTING_H
#define TRUNK_ROUTING_H

#include <stddef.h>
#include <stdint.h>

struct routing {
    uint32_t layer, rows, chosen;
    const uint16_t *expert; /* [rows][chosen], increasing within a row */
    const float *weight;    /* [rows][chosen] */
};

/* The calls of one layer come in this order, from the step's thread. What `r` and `z` point to
 * stays until finish() is back. */
struct gather {
    void *context;
    /* The experts are known, what they are to be given is not yet. */
    void (*hint)(void *context, const struct routing *r);
    /* z: [rows][latent], natural order. Does not wait. */
    void (*begin)(void *context, const struct routing *r, const float *z);
    /* Waits. sum: [rows][latent], overwritten with the sums over all chosen experts, in the
     * fixed point of docs/numerics.md. A negative errno with a sentence in ret_reason (of
     * `size` bytes); -ECANCELED when the step is not wanted any more. */
    int (*finish)(void *context, int64_t *sum, char *ret_reason, size_t size);
    /* Instead of finish(), when the sums are not wanted any more. */
    void (*drop)(void *context);
};

#endif
