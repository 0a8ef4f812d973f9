/*
 * What the process counts and how long things took, for Stats and for the log. Any thread may
 * count; a reader may see counters of slightly different moments.
 */
#ifndef EXPERTD_TALLY_H
#define EXPERTD_TALLY_H

#include <stdatomic.h>
#include <stdint.h>

enum tally_count {
    TALLY_REQUESTS,        /* Compute, answered with sums */
    TALLY_REQUESTS_FAILED, /* Compute, answered with an error */
    TALLY_ROWS,
    TALLY_BYTES_READ, /* from the disk, whole pages */
    TALLY_READS,
    TALLY_READS_FAILED,
    TALLY_TILES_READ,
    TALLY_TILES_HIT,
    TALLY_TILES_COMPUTED,
    TALLY_TILES_BAD,   /* read with a wrong checksum */
    TALLY_AHEAD_READ,  /* experts read because of a Hint */
    TALLY_AHEAD_USED,  /* of those, wanted before they were displaced */
    TALLY_BYTES_AHEAD, /* kept under way on the disks, as measured at start */
    TALLY_COUNTS
};

enum tally_latency {
    TALLY_REQUEST, /* arrival of a Compute to its answer */
    TALLY_READ,    /* of one read */
    TALLY_LATENCIES
};

#define TALLY_BUCKETS 256 /* eight an octave of microseconds */

struct tally {
    _Atomic uint64_t count[TALLY_COUNTS];
    struct tally_times {
        _Atomic uint64_t bucket[TALLY_BUCKETS];
        _Atomic uint64_t number, most; /* microseconds */
    } times[TALLY_LATENCIES];
};

const char *tally_count_name(enum tally_count c); /* with its unit, as in /metrics */
const char *tally_latency_name(enum tally_latency l);

void tally_add(struct tally *t, enum tally_count c, uint64_t n);
uint64_t tally_get(const struct tally *t, enum tally_count c);

void tally_time(struct tally *t, enum tally_latency l, double seconds);

/* Milliseconds below which this share of the times lies, to 9 %; 0 when there are none. */
double tally_percentile(const struct tally *t, enum tally_latency l, double share);

#endif
