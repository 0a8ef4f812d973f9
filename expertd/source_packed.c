/* Regions: everything is arithmetic on the superblock. */
#include "expertd/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* One read for each run of bands that lie side by side in the region. */
static void plan(const struct source *s, const uint32_t layer_expert[2], uint64_t bands,
                 struct source_plan *ret_plan)
{
    const struct region *g = &s->region;
    struct source_read *r = NULL;
    size_t at = 0;
    ret_plan->reads = 0;
    for (uint64_t left = bands; left; left &= left - 1) {
        uint64_t rank =
            region_rank(g, layer_expert[0], layer_expert[1], (uint32_t)__builtin_ctzll(left));
        uint64_t offset = region_tile_offset(g, rank);
        if (!r || offset != r->offset + r->length) {
            r = &ret_plan->read[ret_plan->reads++];
            *r = (struct source_read){.offset = offset, .at = at};
        }
        r->length += g->tile_stride;
        at += g->tile_stride;
    }
    ret_plan->bytes = at;
}

static struct region_tile tile(const struct source *s, const struct source_plan *plan_made,
                               const uint32_t place[3], const uint8_t *slot)
{
    uint64_t rank = region_rank(&s->region, place[0], place[1], place[2]);
    uint64_t offset = region_tile_offset(&s->region, rank);
    for (size_t i = 0; i < plan_made->reads; i++) {
        const struct source_read *r = &plan_made->read[i];
        if (offset >= r->offset && offset < r->offset + r->length)
            return region_view(&s->region, slot + r->at + (offset - r->offset));
    }
    abort(); /* a tile that its own plan does not read: our bug */
}

static uint64_t position(const struct source *s, uint32_t layer, uint32_t expert)
{
    uint32_t band = (uint32_t)__builtin_ctzll(s->region.bands);
    return region_rank(&s->region, layer, expert, band);
}

static const char *path(const struct source *s, uint32_t file)
{
    return s->name;
}

static const struct source_kind packed = {plan, tile, position, path};

static int refuse(const char *name, int error, const char *why, struct problems *p)
{
    problems_add(p, "%s: %s", name, why ? why : strerror(-error));
    return error;
}

static int peek(int fd, const char *name, struct region *ret_region, struct problems *p)
{
    uint8_t block[REGION_BLOCK];
    struct region g;
    const char *why = NULL;
    int r = file_pread(fd, block, sizeof block, 0);
    if (r)
        return refuse(name, r, r == -ENODATA ? "too short to be a region" : NULL, p);
    r = region_decode(&g, block, &why);
    if (r)
        return refuse(name, -EINVAL, why, p);
    if (!g.complete)
        return refuse(name, -EINVAL,
                      "its packing was not finished; the same `kapok pack` goes on", p);
    if (!g.data_offset)
        return refuse(name, -EINVAL, "it holds checksums only, no tiles", p);
    off_t size = lseek(fd, 0, SEEK_END);
    if (size < 0 || (uint64_t)size < region_bytes(&g))
        return refuse(name, -EINVAL, "it ends before its last tile", p);
    *ret_region = g;
    return 0;
}

int source_packed_peek(const char *name, struct region *ret_region, struct problems *p)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return refuse(name, -errno, NULL, p);
    int r = peek(fd, name, ret_region, p);
    close(fd);
    return r;
}

static int open_sums(struct source *s, const char *name, bool check, struct memory *m,
                     struct problems *p)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return refuse(name, -errno, NULL, p);
    int r = peek(fd, name, &s->region, p);
    if (!r && check) {
        r = source_take_sums(s, fd, m, p);
        if (r && r != -ENOMEM)
            refuse(name, r, NULL, p);
    }
    close(fd);
    return r;
}

int source_packed_open(struct source *s, const char *name, const struct shape *shape,
                       const bool buffered_check[2], struct memory *m, struct problems *p)
{
    *s = (struct source){.kind = &packed, .shape = shape, .name = name, .files = 1};
    int r = open_sums(s, name, buffered_check[1], m, p);
    if (r)
        return r;
    s->fd = malloc(sizeof *s->fd);
    if (!s->fd)
        return -ENOMEM;
    s->fd[0] = -1;
    region_tiles(&s->region, &s->tiles);
    s->reads_most = (s->region.bands_all + 1) / 2;
    r = source_open_file(s, 0, buffered_check[0], p);
    if (r)
        source_close(s);
    else
        source_measure(s);
    return r;
}
