/* The file is put together in memory (16 bytes a tile) and written at once. */
#include "client/sums_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "client/expert_reader.h"
#include "client/progress.h"
#include "client/region_verify.h"

struct checker {
    struct region region;
    struct expert_reader reader;
    struct memory memory;
    uint8_t *file;    /* head and table */
    char *before;     /* the file that is there, NULL when none counts */
    uint8_t *scratch; /* for region_sum() */
    struct sums_file_result result;
};

static size_t file_bytes(const struct region *g)
{
    return (size_t)region_bytes(g);
}

static void path_of(const struct checkpoint *c, char path[4200])
{
    snprintf(path, 4200, "%s/" REGION_SUMS, c->folder);
}

/* What is there counts when its head says the same as ours would. */
static void load(struct checker *k, const char *path)
{
    size_t length = 0;
    if (file_read(path, file_bytes(&k->region), &k->before, &length))
        k->before = NULL;
    if (k->before &&
        (length != file_bytes(&k->region) || memcmp(k->before, k->file, REGION_BLOCK) != 0)) {
        free(k->before);
        k->before = NULL;
    }
}

static void found_bad(struct checker *k, const uint32_t place[2], uint32_t band,
                      const char *why, struct problems *p)
{
    if (k->result.bad++ < REGION_VERIFY_NAMED)
        problems_add(p, "layer %u expert %u band %u: %s", place[0], place[1], band, why);
}

static void check_tile(struct checker *k, const uint32_t place[2], uint32_t band,
                       struct problems *p)
{
    struct region_tile t = expert_reader_tile(&k->reader, band);
    uint64_t at = region_sum_offset(region_rank(&k->region, place[0], place[1], band));
    region_sum(&k->region, &t, k->scratch, k->file + at);
    k->result.tiles++;
    if (region_has_nan(&k->region, &t))
        found_bad(k, place, band, "a scale byte of 255 (NaN)", p);
    else if (k->before && memcmp(k->before + at, k->file + at, SUM_BYTES) != 0)
        found_bad(k, place, band, "its checksum differs from " REGION_SUMS, p);
}

static int check_all(struct checker *k, struct problems *p)
{
    struct progress progress;
    uint32_t place[2];
    int r;
    progress_init(&progress, "verifying", k->region.tiles * k->region.tile_bytes, 0);
    while ((r = expert_reader_next(&k->reader, place, p)) > 0) {
        for (uint32_t band = 0; band < k->region.bands_all; band++)
            check_tile(k, place, band, p);
        progress_draw(&progress, k->result.tiles * k->region.tile_bytes);
        if (region_verify_stopped())
            return -ECANCELED;
    }
    progress_fini(&progress, k->result.tiles * k->region.tile_bytes);
    return r;
}

static int take_memory(struct checker *k, struct problems *p)
{
    void *file, *scratch;
    int r = memory_take(&k->memory, "checksums", file_bytes(&k->region), &file);
    if (!r)
        r = memory_take(&k->memory, "scratch", region_scratch(&k->region), &scratch);
    if (r) {
        problems_add(p, "verifying: %s", strerror(-r));
        return r;
    }
    k->file = file;
    k->scratch = scratch;
    k->region.complete = true;
    region_encode(&k->region, k->file);
    return 0;
}

static int run(struct checker *k, const struct checkpoint *c, bool buffered, bool anew,
               struct problems *p)
{
    char path[4200];
    path_of(c, path);
    int r = take_memory(k, p);
    if (!r)
        r = expert_reader_open(&k->reader, c, &k->region,
                               (struct expert_reader_options){0, buffered}, &k->memory, p);
    if (r)
        return r;
    if (!anew)
        load(k, path);
    r = check_all(k, p);
    expert_reader_close(&k->reader);
    if (r || k->before || k->result.bad)
        return r;
    r = file_write(path, k->file, file_bytes(&k->region), 0644);
    if (r)
        problems_add(p, "%s: %s", path, strerror(-r));
    k->result.written = !r;
    return r;
}

int sums_file_verify(const struct checkpoint *c, bool buffered, bool anew,
                     struct sums_file_result *ret_result, struct problems *p)
{
    struct checker k = {0};
    struct tile_set all;
    int r = tile_set_parse(&all, &c->shape, NULL, NULL, NULL, p);
    if (!r)
        r = region_init(&k.region, c, &all, false, p);
    if (r)
        return r;
    memory_init(&k.memory, 0);
    r = run(&k, c, buffered, anew, p);
    memory_fini(&k.memory);
    free(k.before);
    if (!r)
        *ret_result = k.result;
    return r;
}
