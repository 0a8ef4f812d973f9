/*
 * A sequence as the coordinator knows it: its tokens, and how far the stages have got with it.
 *
 * Of its `count` known tokens the first `standing` have run and stand; the stages have been
 * told to keep the first `committed` of them, the rest of the standing ones is said with the
 * next step. Everything from `standing` on has yet to run. The scheduler's thread owns it.
 */
#ifndef COORDINATOR_SEQUENCE_H
#define COORDINATOR_SEQUENCE_H

#include <stdint.h>

struct sequence {
    uint64_t id;    /* at the stages; 0: not open there */
    uint64_t epoch; /* of the hub when it was opened or replayed */
    uint32_t *token;
    uint32_t count, room; /* room: positions it may grow to */
    uint32_t standing, committed;
};

#endif
