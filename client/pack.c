/*
 * One expert at a time: its bands are gathered, summed and written while the next ones are
 * being read. Every DRAFT_EXPERTS the head says how far it is, so that is what a kill can cost.
 */
#include "client/pack.h"

#include <errno.h>
#include <string.h>

#include "client/expert_reader.h"
#include "client/progress.h"
#include "client/region_verify.h"

#define DRAFT_EXPERTS 64

struct packer {
    struct region_file file;
    struct expert_reader reader;
    struct memory memory;
    uint8_t *tiles; /* of one expert, packed */
    uint64_t rank;  /* of the next tile */
    unsigned bands;
};

/* Gathers the bands of the expert that was read last. */
static int gather(struct packer *k, const uint32_t place[2], uint8_t (*sums)[SUM_BYTES],
                  struct problems *p)
{
    const struct region *g = &k->file.region;
    uint64_t left = g->bands;
    for (unsigned i = 0; left; i++, left &= left - 1) {
        uint32_t band = (uint32_t)__builtin_ctzll(left);
        uint8_t *out = k->tiles + i * g->tile_stride;
        struct region_tile t = expert_reader_tile(&k->reader, band);
        if (region_has_nan(g, &t)) {
            problems_add(p,
                         "layer %u expert %u band %u has a scale byte of 255 (NaN): not packed",
                         place[0], place[1], band);
            return -EDOM;
        }
        region_gather(g, &t, out);
        sum_of(out, g->tile_bytes, sums[i]);
    }
    return 0;
}

static int pack_expert(struct packer *k, const uint32_t place[2], struct problems *p)
{
    uint8_t sums[SHAPE_BANDS][SUM_BYTES];
    int r = gather(k, place, sums, p);
    if (r)
        return r;
    r = region_file_put(&k->file, k->rank, k->tiles, k->bands, sums[0]);
    if (!r) {
        k->rank += k->bands;
        if (k->rank % ((uint64_t)DRAFT_EXPERTS * k->bands) == 0)
            r = region_file_draft(&k->file, k->rank);
    }
    if (r)
        problems_add(p, "%s: writing: %s", k->file.path, strerror(-r));
    return r;
}

static int pack_all(struct packer *k, struct problems *p)
{
    const struct region *g = &k->file.region;
    struct progress progress;
    uint32_t place[2];
    int r;
    progress_init(&progress, "packing", g->tiles * g->tile_stride, k->rank * g->tile_stride);
    while ((r = expert_reader_next(&k->reader, place, p)) > 0) {
        r = pack_expert(k, place, p);
        if (!r && region_verify_stopped())
            r = -ECANCELED;
        if (r)
            break;
        progress_draw(&progress, k->rank * g->tile_stride);
    }
    progress_fini(&progress, k->rank * g->tile_stride);
    if (r && r != -ECANCELED)
        return r;
    int kept = region_file_draft(&k->file, k->rank);
    if (kept)
        problems_add(p, "%s: writing: %s", k->file.path, strerror(-kept));
    return kept ? kept : r;
}

/* Reads it all back; what is wrong is packed again by the next run. */
static int prove(struct packer *k, struct problems *p)
{
    uint64_t bad = 0, first = 0;
    int r = region_verify(&k->file, &k->memory, &bad, &first, p);
    if (!r && bad) {
        problems_add(p, "%s: %llu tiles do not read as they were written", k->file.path,
                     (unsigned long long)bad);
        region_file_draft(&k->file, first / k->bands * k->bands);
        return -EIO;
    }
    if (!r)
        r = region_file_complete(&k->file);
    return r;
}

static int run(struct packer *k, const struct checkpoint *c, bool buffered, struct problems *p)
{
    const struct region *g = &k->file.region;
    void *tiles;
    k->bands = (unsigned)__builtin_popcountll(g->bands);
    k->rank = g->complete ? g->tiles : g->done;
    int r = memory_take(&k->memory, "tiles", k->bands * g->tile_stride, &tiles);
    if (!r)
        r = expert_reader_open(&k->reader, c, g,
                               (struct expert_reader_options){k->rank / k->bands, buffered},
                               &k->memory, p);
    if (r)
        return r;
    k->tiles = tiles;
    if (k->rank < g->tiles)
        r = pack_all(k, p);
    expert_reader_close(&k->reader);
    return r ? r : prove(k, p);
}

int pack(const struct checkpoint *c, const struct tile_set *tiles,
         const struct region_file_options *o, struct problems *p)
{
    struct packer k = {0};
    struct region wanted;
    int r = region_init(&wanted, c, tiles, true, p);
    if (r)
        return r;
    memory_init(&k.memory, 0);
    r = region_file_open(&k.file, o, &wanted, &k.memory, p);
    if (!r) {
        r = run(&k, c, o->buffered, p);
        region_file_close(&k.file);
    }
    memory_fini(&k.memory);
    return r;
}
