/* A few reads of several tiles each are always under way; nothing else is needed to keep a disk
 * busy. */
#include "client/region_verify.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/disk.h"

#define READS      8
#define READ_BYTES ((uint64_t)8 << 20)

struct verifier {
    const struct region_file *file;
    struct disk *disk;
    struct disk_read read[READS];
    uint64_t each, next, checked, bad, first; /* tiles a read; ranks; counts */
    uint8_t *buffers;
    struct problems *problems;
};

bool region_verify_stopped(void)
{
    sigset_t pending;
    return !sigpending(&pending) &&
           (sigismember(&pending, SIGINT) > 0 || sigismember(&pending, SIGTERM) > 0);
}

static void start(struct verifier *v, struct disk_read *r)
{
    const struct region *g = &v->file->region;
    uint64_t tiles = g->tiles - v->next < v->each ? g->tiles - v->next : v->each;
    size_t which = (size_t)(r - v->read);
    r->fd = v->file->direct;
    r->offset = region_tile_offset(g, v->next);
    r->length = tiles * g->tile_stride;
    r->buffer = v->buffers + which * v->each * g->tile_stride;
    disk_submit(v->disk, r);
    v->next += tiles;
}

static void found_bad(struct verifier *v, uint64_t rank, const char *why)
{
    uint32_t place[3];
    if (!v->bad++ || rank < v->first)
        v->first = rank;
    region_place(&v->file->region, rank, place);
    if (v->bad <= REGION_VERIFY_NAMED)
        problems_add(v->problems, "layer %u expert %u band %u: %s", place[0], place[1],
                     place[2], why);
}

static void check(struct verifier *v, const struct disk_read *r)
{
    const struct region *g = &v->file->region;
    uint64_t rank = (r->offset - g->data_offset) / g->tile_stride;
    for (uint64_t i = 0; i < r->length / g->tile_stride; i++, rank++) {
        uint8_t sum[SUM_BYTES];
        const uint8_t *tile = (const uint8_t *)r->buffer + i * g->tile_stride;
        if (r->error) {
            found_bad(v, rank, strerror(-r->error));
            continue;
        }
        sum_of(tile, g->tile_bytes, sum);
        if (memcmp(sum, v->file->sums + rank * SUM_BYTES, SUM_BYTES) != 0)
            found_bad(v, rank, "its checksum differs");
    }
    v->checked += r->length / g->tile_stride;
}

static int run(struct verifier *v)
{
    const struct region *g = &v->file->region;
    struct progress progress;
    struct disk_read *r;
    progress_init(&progress, "verifying", g->tiles * g->tile_stride, 0);
    for (size_t i = 0; i < READS && v->next < g->tiles; i++)
        start(v, &v->read[i]);
    while ((r = disk_reap(v->disk, -1))) {
        check(v, r);
        progress_draw(&progress, v->checked * g->tile_stride);
        if (region_verify_stopped())
            return -ECANCELED;
        if (v->next < g->tiles)
            start(v, r);
    }
    progress_fini(&progress, v->checked * g->tile_stride);
    return 0;
}

int region_verify(const struct region_file *f, struct memory *m, uint64_t *ret_bad,
                  uint64_t *ret_first, struct problems *p)
{
    struct verifier v = {.file = f, .problems = p};
    void *buffers;
    v.each = READ_BYTES / f->region.tile_stride ? READ_BYTES / f->region.tile_stride : 1;
    int r = memory_take(m, "verifying", READS * v.each * f->region.tile_stride, &buffers);
    if (!r)
        r = disk_open(&v.disk, READS);
    if (r) {
        problems_add(p, "verifying: %s", strerror(-r));
        return r;
    }
    v.buffers = buffers;
    r = run(&v);
    disk_close(v.disk);
    if (r)
        return r;
    *ret_bad = v.bad;
    *ret_first = v.first;
    return 0;
}
