/*
 * Expertds that exist only in a test: each a real server on a loopback port, with made-up sums,
 * that can be told to misbehave. The sums are integers of (row, expert, band), so a tile that
 * is asked for twice or never shows.
 */
#ifndef TESTS_FAKE_EXPERTD_H
#define TESTS_FAKE_EXPERTD_H

#include <stdatomic.h>

#include "base/thread.h"
#include "proto/checkpoint.h"
#include "proto/compute.h"
#include "proto/link_server.h"
#include "proto/tile.h"

struct fake {
    const struct checkpoint *checkpoint;
    struct tile_set tiles;
    char address[64];
    struct link_server *server;
    struct queue incoming;
    struct thread thread;
    uint32_t rows_most; /* it takes */
    _Atomic int error;  /* that every Compute is answered with, when not 0 */
    atomic_bool deaf;   /* nothing is answered, as if it hung */
    atomic_bool mute;   /* Computes are swallowed, Hellos answered */
    _Atomic unsigned computes, hints, rows_seen; /* rows_seen: most rows of one Compute */
    struct link_request *held[64];
    unsigned helds;
};

/* `bands` as for tile_set_parse(). Without an address the kernel chooses a port; a later start
 * is at the same. */
void fake_start(struct fake *f, const struct checkpoint *c, const char *bands);
void fake_stop(struct fake *f);

/* What all tiles of this expert add for one number of a row. */
int64_t fake_sum(const struct shape *s, uint32_t expert, float z, float weight);

#endif
