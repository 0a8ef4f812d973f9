/*
 * A counter-based random generator (Philox4x32-10; Salmon, Moraes, Dror, Shaw, "Parallel random
 * numbers: as easy as 1, 2, 3", SC 2011): the number at a place is a pure function of the key
 * and the counter, so a generation that is resumed or speculated draws the same numbers.
 */
#ifndef COORDINATOR_PHILOX_H
#define COORDINATOR_PHILOX_H

#include <stdint.h>

void philox_block(const uint32_t key[2], const uint32_t counter[4], uint32_t ret_word[4]);

/* Uniform in [0, 1) with 53 bits, for choice `choice` at `position` under `seed`. */
double philox_uniform(uint64_t seed, uint32_t choice, uint64_t position);

#endif
