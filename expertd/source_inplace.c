/* Places are looked up by name once, at start; everything after is arithmetic. */
#include "expertd/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/file.h"
#include "kernels/kernels.h"

enum { W1, S1, W2, S2, W3, S3 };

struct fragment {
    uint32_t shard;
    uint64_t offset, length;
};

static struct source_place *place_of(const struct source *s, uint32_t layer, uint32_t expert)
{
    return &s->place[(size_t)(layer - s->shape->dense_layers) * s->shape->experts + expert];
}

static bool is_down(int part)
{
    return part == W2 || part == S2;
}

/* Bytes of one row of a part, as it lies in the file. */
static size_t row_bytes(const struct shape *s, int part)
{
    size_t cols = is_down(part) ? s->expert_width : s->latent;
    return part % 2 ? cols / KERNELS_GROUP : cols / 2;
}

/* ---- plans ----------------------------------------------------------------------------- */

static bool before(const struct fragment *a, const struct fragment *b)
{
    return a->shard != b->shard ? a->shard < b->shard : a->offset < b->offset;
}

static size_t add_fragment(struct fragment *f, size_t count, struct fragment one)
{
    size_t i = count;
    for (; i && before(&one, &f[i - 1]); i--)
        f[i] = f[i - 1];
    f[i] = one;
    return count + 1;
}

/* The rows of a part that these bands need, one fragment per run of bands, in file order. */
static size_t cut_part(const struct source *s, const struct source_place *place, int part,
                       uint64_t bands, struct fragment *f, size_t count)
{
    const struct shape *h = s->shape;
    size_t row = row_bytes(h, part), band = row * h->band;
    if (is_down(part))
        return add_fragment(
            f, count,
            (struct fragment){place->shard[part], place->offset[part], row * h->latent});
    for (uint32_t b = 0, end; b < h->bands; b = end + 1) {
        for (end = b; end < h->bands && bands >> end & 1; end++)
            ;
        if (end > b)
            count = add_fragment(f, count,
                                 (struct fragment){place->shard[part],
                                                   place->offset[part] + b * band,
                                                   (end - b) * band});
    }
    return count;
}

static void plan(const struct source *s, const uint32_t layer_expert[2], uint64_t bands,
                 struct source_plan *ret_plan)
{
    struct fragment f[SOURCE_READS];
    const struct source_place *place = place_of(s, layer_expert[0], layer_expert[1]);
    struct source_read *r = NULL;
    size_t count = 0, at = 0;

    for (int part = 0; part < REGION_PARTS; part++)
        count = cut_part(s, place, part, bands, f, count);
    ret_plan->reads = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t end = f[i].offset + f[i].length;
        if (r && r->file == f[i].shard &&
            disk_floor(f[i].offset) <= disk_floor(r->offset + r->length + DISK_PAGE - 1)) {
            r->length = end - r->offset;
        } else {
            if (r)
                at += disk_span(r->offset, r->length);
            r = &ret_plan->read[ret_plan->reads++];
            *r = (struct source_read){f[i].shard, f[i].offset, f[i].length, at};
        }
    }
    ret_plan->bytes = r ? at + disk_span(r->offset, r->length) : 0;
}

/* Where a byte of a file lies in the slot. */
static const uint8_t *locate(const struct source_plan *made, uint32_t shard, uint64_t offset,
                             const uint8_t *slot)
{
    for (size_t i = 0; i < made->reads; i++) {
        const struct source_read *r = &made->read[i];
        if (r->file == shard && offset >= r->offset && offset < r->offset + r->length)
            return slot + r->at + (offset - disk_floor(r->offset));
    }
    abort(); /* a tile that its own plan does not read: our bug */
}

static struct region_tile tile(const struct source *s, const struct source_plan *made,
                               const uint32_t place_band[3], const uint8_t *slot)
{
    const struct shape *h = s->shape;
    const struct source_place *place = place_of(s, place_band[0], place_band[1]);
    const uint8_t *part[REGION_PARTS];
    uint32_t band = place_band[2];

    for (int i = 0; i < REGION_PARTS; i++) {
        uint64_t skip = is_down(i) ? 0 : (uint64_t)band * h->band * row_bytes(h, i);
        part[i] = locate(made, place->shard[i], place->offset[i] + skip, slot);
    }
    return (struct region_tile){
        .w1 = part[W1],
        .s1 = part[S1],
        .w3 = part[W3],
        .s3 = part[S3],
        .w2 = part[W2] + (size_t)band * h->band / 2,
        .s2 = part[S2] + (size_t)band * h->band / KERNELS_GROUP,
        .w2_stride = row_bytes(h, W2),
        .s2_stride = row_bytes(h, S2),
    };
}

static uint64_t position(const struct source *s, uint32_t layer, uint32_t expert)
{
    const struct source_place *place = place_of(s, layer, expert);
    return (uint64_t)place->shard[W1] << 48 | place->offset[W1];
}

static const char *path(const struct source *s, uint32_t shard)
{
    return safetensors_path(s->checkpoint->tensors, shard);
}

static const struct source_kind inplace = {plan, tile, position, path};

/* ---- opening --------------------------------------------------------------------------- */

static int find_part(struct source *s, uint32_t layer, uint32_t expert, int part,
                     struct problems *p)
{
    static const char *const name[] = {"w1.weight_packed", "w1.weight_scale",
                                       "w2.weight_packed", "w2.weight_scale",
                                       "w3.weight_packed", "w3.weight_scale"};
    const struct shape *h = s->shape;
    uint32_t shape[2] = {is_down(part) ? h->latent : h->expert_width,
                         (uint32_t)row_bytes(h, part)};
    char text[160];

    snprintf(text, sizeof text, "language_model.model.layers.%u.block_sparse_moe.experts.%u.%s",
             layer, expert, name[part]);
    const struct safetensors_tensor *t =
        checkpoint_tensor(s->checkpoint, text, SAFETENSORS_U8, shape, 2, p);
    if (!t)
        return -EINVAL;
    struct source_place *place = place_of(s, layer, expert);
    place->offset[part] = t->offset;
    place->shard[part] = t->shard;
    return 0;
}

static int find_all(struct source *s, struct problems *p)
{
    const struct shape *h = s->shape;
    size_t before = p->count;
    for (uint32_t layer = h->dense_layers; layer < h->layers; layer++)
        for (uint32_t expert = 0; expert < h->experts; expert++)
            for (int part = 0; part < REGION_PARTS; part++)
                if (source_bands(s, layer, expert))
                    find_part(s, layer, expert, part, p);
    return p->count > before ? -EINVAL : 0;
}

static int open_shards(struct source *s, bool buffered, struct problems *p)
{
    const struct shape *h = s->shape;
    for (uint32_t layer = h->dense_layers; layer < h->layers; layer++)
        for (uint32_t expert = 0; expert < h->experts; expert++)
            for (int part = 0; part < REGION_PARTS; part++) {
                if (!source_bands(s, layer, expert))
                    break;
                int r =
                    source_open_file(s, place_of(s, layer, expert)->shard[part], buffered, p);
                if (r)
                    return r;
            }
    return 0;
}

/* The checksums beside the shards, when there are any. */
static int find_sums(struct source *s, struct memory *m, struct problems *p)
{
    char path[4200];
    uint8_t block[REGION_BLOCK];
    const char *why = NULL;
    snprintf(path, sizeof path, "%s/" REGION_SUMS, s->checkpoint->folder);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    int r = file_pread(fd, block, sizeof block, 0);
    if (!r)
        r = region_decode(&s->region, block, &why);
    if (!r)
        r = region_check(&s->region, path, s->checkpoint, p);
    if (!r && s->region.complete && s->region.tiles == shape_tiles(s->shape))
        r = source_take_sums(s, fd, m, p);
    else if (!r)
        r = -EINVAL;
    if (r && r != -EPROTO)
        problems_add(p, "%s: %s; `kapok verify` writes it anew", path,
                     why ? why : "it does not have the checksums of all tiles");
    close(fd);
    return r;
}

static int take_places(struct source *s, struct memory *m, struct problems *p)
{
    const struct shape *h = s->shape;
    size_t bytes = (size_t)(h->layers - h->dense_layers) * h->experts * sizeof *s->place;
    void *place;
    int r = memory_take(m, "expert index", bytes, &place);
    if (r)
        problems_add(p, "--memory: no room for the index of experts (%zu bytes)", bytes);
    else
        s->place = place;
    return r;
}

static int take_files(struct source *s)
{
    s->files = safetensors_shards(s->checkpoint->tensors);
    s->fd = malloc((s->files + 1) * sizeof *s->fd);
    if (!s->fd)
        return -ENOMEM;
    for (size_t i = 0; i < s->files; i++)
        s->fd[i] = -1;
    return 0;
}

int source_inplace_open(struct source *s, const struct checkpoint *c,
                        const struct tile_set *tiles, const bool buffered_check[2],
                        struct memory *m, struct problems *p)
{
    *s =
        (struct source){.kind = &inplace, .checkpoint = c, .shape = &c->shape, .tiles = *tiles};
    s->reads_most = 4 * ((c->shape.bands + 1) / 2) + 2;
    int r = take_places(s, m, p);
    if (!r)
        r = take_files(s);
    if (!r)
        r = find_all(s, p);
    if (!r)
        r = open_shards(s, buffered_check[0], p);
    if (!r && buffered_check[1])
        r = find_sums(s, m, p);
    if (r)
        source_close(s);
    else
        source_measure(s);
    return r;
}
