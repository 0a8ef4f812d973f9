/*
 * kernelcheck --bench: how near the kernels come to what this machine can read and compute,
 * both measured in the same run. A case is run on some threads, each with a part of its own, in
 * five rounds; all cases of one round come after each other, so that a busy machine does them
 * alike.
 */
#ifndef TESTS_KERNELS_BENCH_H
#define TESTS_KERNELS_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

#define BENCH_COLS      7168 /* a row of most of K3's dense matrices */
#define BENCH_WIDTH     3584 /* a row of an expert's w1 and w3 */
#define BENCH_HEADS     96
#define BENCH_DIM       128
#define BENCH_LATENT    576
#define BENCH_THREADS   64
#define BENCH_VECTORS   64
#define BENCH_SET_BYTES ((size_t)1280 << 20) /* beyond any cache */

/* What all threads read, and what each has for itself. */
struct bench_data {
    const struct kernels *k;
    const struct bench_machine *machine;
    uint8_t *set;    /* BENCH_SET_BYTES: bf16 rows, and read as nibbles and as fp32 too */
    uint8_t *scale;  /* for the set as nibbles */
    uint8_t *packed; /* equal 12-bit blocks in a row */
    size_t packed_block, packed_blocks;
    float *state; /* KDA states, or what is copied */
    size_t state_floats;
};

struct bench_thread {
    const struct bench_data *d;
    size_t index, threads;
    float *x, *y, *small;
    double nothing; /* results are added here, so that nothing is optimised away */
};

struct bench_case {
    const char *name;
    void (*run)(struct bench_thread *t, size_t vectors);
    size_t vectors;
    double bytes, flops; /* of all threads together; 0 when not told */
    enum bench_limit {
        BENCH_LIMIT_READ,
        BENCH_LIMIT_COPY,
        BENCH_LIMIT_FMA,
    } limit;
};

/* The cases, ended by one without a name; the first three measure the machine. */
size_t bench_cases(const struct bench_data *d, struct bench_case *ret, size_t room);

/* The machine alone, by bench_peak.c, which is built once for each instruction set. */
#define BENCH_PEAK_FLOPS 2e9
struct bench_machine {
    float (*multiply_add)(size_t flops);
    uint64_t (*read_all)(const void *memory, size_t bytes);
};
extern const struct bench_machine bench_peak_c, bench_peak_avx2, bench_peak_avx512;

int bench_run(const struct kernels *k, size_t threads, const char *only);

#endif
