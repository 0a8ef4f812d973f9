/* The smallest depth that comes within a few per cent of the best, with room above it. */
#include "expertd/trial.h"

#include "base/thread.h"

#define SECONDS 0.08                /* for each depth */
#define ENOUGH  0.97                /* of the best rate */
#define LEAST   ((uint64_t)1 << 30) /* bytes of a source worth measuring */

struct run {
    const struct trial *trial;
    struct disk_read read[TRIAL_MOST];
    uint64_t at; /* steps through the experts in an order that looks random */
};

/* A megabyte of some expert. */
static void start(struct run *r, struct disk_read *read)
{
    const struct source *s = r->trial->source;
    const struct shape *h = s->shape;
    uint32_t at[2];
    do {
        r->at = r->at * 6364136223846793005u + 1442695040888963407u;
        at[0] = h->dense_layers + (uint32_t)((r->at >> 33) % (h->layers - h->dense_layers));
        at[1] = (uint32_t)((r->at >> 17) % h->experts);
    } while (!source_bands(s, at[0], at[1]));
    struct source_plan plan;
    source_plan(s, at, source_bands(s, at[0], at[1]), &plan);
    const struct source_read *from = &plan.read[r->at % plan.reads];
    size_t most = TRIAL_READ - DISK_PAGE;
    read->fd = s->fd[from->file];
    read->offset = from->offset;
    read->length = from->length < most ? from->length : most;
    read->buffer = r->trial->room + (size_t)(read - r->read) * TRIAL_READ;
    disk_submit(r->trial->disk, read);
}

/* Bytes a second at a depth; 0 when stopped. */
static double rate_at(struct run *r, unsigned depth)
{
    double begun = thread_now(), end = begun;
    uint64_t bytes = 0;
    bool stopped = false;
    struct disk_read *read;
    for (unsigned i = 0; i < depth; i++)
        start(r, &r->read[i]);
    while ((read = disk_reap(r->trial->disk, -1))) {
        end = thread_now();
        bytes += read->fetched;
        stopped = stopped || r->trial->wanted(r->trial->context);
        if (!stopped && end - begun < SECONDS)
            start(r, read);
    }
    return stopped || end <= begun ? 0 : (double)bytes / (end - begun);
}

size_t trial(const struct trial *t)
{
    static const unsigned depth[] = {2, 4, 8, 16, 32};
    double rate[sizeof depth / sizeof *depth], best = 0;
    struct run r = {.trial = t, .at = 1};
    size_t n = sizeof depth / sizeof *depth, chosen = 0;
    if (t->source->experts_held * t->source->slot_bytes < LEAST)
        return TRIAL_UNDER;
    for (size_t i = 0; i < n; i++) {
        rate[i] = rate_at(&r, depth[i]);
        if (rate[i] <= 0)
            return TRIAL_UNDER;
        best = rate[i] > best ? rate[i] : best;
    }
    while (rate[chosen] < ENOUGH * best)
        chosen++;
    return 2 * depth[chosen] * TRIAL_READ;
}
