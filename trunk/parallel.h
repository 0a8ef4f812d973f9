/*
 * The threads of the arithmetic: a function is run over ranges of items that together are all
 * of them. The only place where OpenMP is spoken to; without it everything runs in the caller.
 */
#ifndef TRUNK_PARALLEL_H
#define TRUNK_PARALLEL_H

#include <stddef.h>

struct parallel_range {
    size_t first, end; /* items, half-open */
    unsigned thread;   /* below the `threads` of the run; one range at a time has it */
};

typedef void parallel_work(void *context, struct parallel_range range);

/* Ranges of at most `grain` items, each given once to some thread, in no order. Returns when
 * all are done. Called by the step's thread only. */
void parallel_run(unsigned threads, size_t items, size_t grain, parallel_work *work,
                  void *context);

/* A grain that gives every thread a few ranges, a multiple of `unit`. */
size_t parallel_grain(unsigned threads, size_t items, size_t unit);

#endif
