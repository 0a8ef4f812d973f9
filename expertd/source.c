/* What both kinds of sources share: files, checksums, sizes. */
#include "expertd/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/file.h"

int source_open_file(struct source *s, uint32_t file, bool buffered, struct problems *p)
{
    const char *path = source_path(s, file);
    if (s->fd[file] >= 0)
        return 0;
    int r = disk_file(path, buffered, &s->fd[file]);
    if (r == -EINVAL)
        problems_add(p, "%s: its file system refuses O_DIRECT; --buffered reads without it",
                     path);
    else if (r)
        problems_add(p, "%s: %s", path, strerror(-r));
    return r;
}

int source_take_sums(struct source *s, int fd, struct memory *m, struct problems *p)
{
    void *sums;
    size_t bytes = s->region.tiles * SUM_BYTES;
    int r = memory_take(m, "checksums", bytes, &sums);
    if (r) {
        problems_add(p, "--memory: no room for %zu bytes of checksums", bytes);
        return r;
    }
    r = file_pread(fd, sums, bytes, region_sum_offset(0));
    if (!r)
        s->sums = sums;
    return r;
}

void source_measure(struct source *s)
{
    const struct shape *h = s->shape;
    struct source_plan plan;
    for (uint32_t layer = h->dense_layers; layer < h->layers; layer++)
        for (uint32_t expert = 0; expert < h->experts; expert++) {
            uint64_t bands = source_bands(s, layer, expert);
            if (!bands)
                continue;
            source_plan(s, (uint32_t[]){layer, expert}, bands, &plan);
            if (plan.bytes > s->slot_bytes)
                s->slot_bytes = plan.bytes;
            s->experts_held++;
        }
}

void source_close(struct source *s)
{
    for (size_t i = 0; s->fd && i < s->files; i++)
        if (s->fd[i] >= 0)
            close(s->fd[i]);
    free(s->fd);
    s->fd = NULL;
}

uint64_t source_bands(const struct source *s, uint32_t layer, uint32_t expert)
{
    return tile_set_bands(&s->tiles, layer, expert);
}

void source_plan(const struct source *s, const uint32_t layer_expert[2], uint64_t bands,
                 struct source_plan *ret_plan)
{
    s->kind->plan(s, layer_expert, bands, ret_plan);
}

struct region_tile source_tile(const struct source *s, const struct source_plan *plan,
                               const uint32_t place[3], const uint8_t *slot)
{
    return s->kind->tile(s, plan, place, slot);
}

bool source_sound(const struct source *s, const struct region_tile *t, const uint32_t place[3],
                  uint8_t *scratch)
{
    uint8_t sum[SUM_BYTES];
    uint64_t rank = region_rank(&s->region, place[0], place[1], place[2]);
    region_sum(&s->region, t, scratch, sum);
    return memcmp(sum, s->sums + rank * SUM_BYTES, SUM_BYTES) == 0;
}

uint64_t source_position(const struct source *s, uint32_t layer, uint32_t expert)
{
    return s->kind->position(s, layer, expert);
}

const char *source_path(const struct source *s, uint32_t file)
{
    return s->kind->path(s, file);
}
