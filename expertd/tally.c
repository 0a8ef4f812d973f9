/* Counters, and times in buckets that grow by an eighth of their octave. */
#include "expertd/tally.h"

const char *tally_count_name(enum tally_count c)
{
    static const char *const name[TALLY_COUNTS] = {
        [TALLY_REQUESTS] = "requests",
        [TALLY_REQUESTS_FAILED] = "requests_failed",
        [TALLY_ROWS] = "rows",
        [TALLY_BYTES_READ] = "bytes_read",
        [TALLY_READS] = "reads",
        [TALLY_READS_FAILED] = "reads_failed",
        [TALLY_TILES_READ] = "tiles_read",
        [TALLY_TILES_HIT] = "tiles_hit",
        [TALLY_TILES_COMPUTED] = "tiles_computed",
        [TALLY_TILES_BAD] = "tiles_bad",
        [TALLY_AHEAD_READ] = "experts_read_ahead",
        [TALLY_AHEAD_USED] = "experts_read_ahead_used",
        [TALLY_BYTES_AHEAD] = "disk_bytes_under_way",
    };
    return name[c];
}

const char *tally_latency_name(enum tally_latency l)
{
    return l == TALLY_REQUEST ? "compute_ms" : "read_ms";
}

void tally_add(struct tally *t, enum tally_count c, uint64_t n)
{
    atomic_fetch_add_explicit(&t->count[c], n, memory_order_relaxed);
}

uint64_t tally_get(const struct tally *t, enum tally_count c)
{
    return atomic_load_explicit(&t->count[c], memory_order_relaxed);
}

static unsigned bucket_of(uint64_t us)
{
    if (us < 8)
        return (unsigned)us;
    unsigned octave = 63 - (unsigned)__builtin_clzll(us);
    unsigned b = (octave - 2) * 8 + (unsigned)(us >> (octave - 3) & 7);
    return b < TALLY_BUCKETS ? b : TALLY_BUCKETS - 1;
}

/* First microsecond beyond a bucket. */
static uint64_t bucket_end(unsigned b)
{
    if (b < 8)
        return b + 1;
    unsigned octave = b / 8 + 2;
    return (uint64_t)(8 + b % 8 + 1) << (octave - 3);
}

void tally_time(struct tally *t, enum tally_latency l, double seconds)
{
    struct tally_times *times = &t->times[l];
    uint64_t us = seconds > 0 ? (uint64_t)(seconds * 1e6) : 0, most = times->most;
    atomic_fetch_add_explicit(&times->bucket[bucket_of(us)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&times->number, 1, memory_order_relaxed);
    while (us > most && !atomic_compare_exchange_weak(&times->most, &most, us))
        ;
}

double tally_percentile(const struct tally *t, enum tally_latency l, double share)
{
    const struct tally_times *times = &t->times[l];
    uint64_t wanted = (uint64_t)(share * (double)times->number), seen = 0, most = times->most;
    if (!times->number)
        return 0;
    for (unsigned b = 0; b < TALLY_BUCKETS; b++) {
        seen += times->bucket[b];
        if (seen > wanted)
            return 1e-3 * (double)(bucket_end(b) < most ? bucket_end(b) : most);
    }
    return 1e-3 * (double)most;
}
