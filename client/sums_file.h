/*
 * The checksums of a checkpoint that is served in place: REGION_SUMS beside its shards, made by
 * reading every expert once, or compared with what is read now.
 */
#ifndef CLIENT_SUMS_FILE_H
#define CLIENT_SUMS_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/problems.h"
#include "proto/checkpoint.h"

struct sums_file_result {
    bool written;   /* there was none, or not of this checkpoint */
    uint64_t tiles; /* looked at */
    uint64_t bad;   /* tiles that differ, or have a scale of 255; named in the sentences */
};

/* `anew`: writes the file even when there is one. -ECANCELED when SIGINT or SIGTERM is pending;
 * others with sentences. Nothing is written when tiles are bad. */
int sums_file_verify(const struct checkpoint *c, bool buffered, bool anew,
                     struct sums_file_result *ret_result, struct problems *p);

#endif
