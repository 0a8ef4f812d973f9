/*
 * What the machine can do: multiply-adds in registers alone, as many at once as hide their
 * latency, and reading memory into registers. Built once for each instruction set, with
 * contraction, unlike everything else.
 */
#include "tests/kernels/bench.h"

#define CHAINS 12

#define PASTE(name, set) name##_##set
#define NAME(name, set)  PASTE(name, set)

typedef float peak_floats __attribute__((vector_size(BENCH_PEAK_BYTES)));
typedef uint64_t peak_bits __attribute__((vector_size(BENCH_PEAK_BYTES)));

static float multiply_add(size_t flops)
{
    const size_t lanes = BENCH_PEAK_BYTES / sizeof(float);
    peak_floats sum[CHAINS], factor = {0}, term = {0};
    factor += 0.999f;
    term += 0.001f;
    for (size_t j = 0; j < CHAINS; j++)
        sum[j] = term * (float)j;
    for (size_t i = 0; i < flops / (2 * CHAINS * lanes); i++) {
#pragma GCC unroll 12
        for (size_t j = 0; j < CHAINS; j++)
            sum[j] = sum[j] * factor + term;
    }
    for (size_t j = 1; j < CHAINS; j++)
        sum[0] += sum[j];
    return sum[0][0];
}

static uint64_t read_all(const void *memory, size_t bytes)
{
    const peak_bits *at = memory;
    peak_bits sum[4] = {{0}};
    for (size_t i = 0; i < bytes / sizeof sum; i++, at += 4)
        for (size_t j = 0; j < 4; j++)
            sum[j] ^= at[j];
    return (sum[0] ^ sum[1] ^ sum[2] ^ sum[3])[0];
}

const struct bench_machine NAME(bench_peak, BENCH_PEAK_SET) = {multiply_add, read_all};
