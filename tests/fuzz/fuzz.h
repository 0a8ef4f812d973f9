/*
 * A fuzz target: one reader of bytes from outside. With -Dfuzz=true (clang) each is a libFuzzer
 * program. Without, the same target is linked with fuzz_replay.c and is a test: it runs its
 * seeds and a fixed number of mutations of them, the same at every run.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#define FUZZ_SEED_MOST 65536

/* Reads the bytes; whatever they are, nothing may crash. Always 0. The name is libFuzzer's. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* The i-th good input into `out` (FUZZ_SEED_MOST bytes); gives its length, 0 past the last. */
size_t fuzz_seed(size_t i, uint8_t *out);

#endif
