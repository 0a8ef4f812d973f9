/* Places are looked up by name once, at start; everything after is arithmetic. */
#include "expertd/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/disk.h"

enum { W1, S1, W2, S2, W3, S3 };

struct fragment {
    uint16_t shard;
    uint64_t offset, length;
};

static struct source_place *place_of(const struct source *s, uint32_t layer, uint32_t expert)
{
    return &s->place[(size_t)(layer - s->shape->dense_layers) * s->shape->experts + expert];
}

uint64_t source_bands(const struct source *s, uint32_t layer, uint32_t expert)
{
    return tile_set_bands(&s->tiles, layer, expert);
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

static void measure(struct source *s, uint32_t layer, uint32_t expert, uint64_t bands)
{
    struct source_plan plan;
    source_plan(s, (uint32_t[]){layer, expert}, bands, &plan);
    if (plan.bytes > s->slot_bytes)
        s->slot_bytes = plan.bytes;
    s->experts_held++;
}

static int find_all(struct source *s, struct problems *p)
{
    const struct shape *h = s->shape;
    size_t before = p->count;
    for (uint32_t layer = h->dense_layers; layer < h->layers; layer++)
        for (uint32_t expert = 0; expert < h->experts; expert++) {
            uint64_t bands = source_bands(s, layer, expert);
            for (int part = 0; bands && part < SOURCE_PARTS; part++)
                find_part(s, layer, expert, part, p);
            if (bands && p->count == before)
                measure(s, layer, expert, bands);
        }
    return p->count > before ? -EINVAL : 0;
}

static int open_shard(struct source *s, uint16_t shard, bool buffered, struct problems *p)
{
    if (s->fd[shard] >= 0)
        return 0;
    int r = disk_file(source_path(s, shard), buffered, &s->fd[shard]);
    if (r == -EINVAL)
        problems_add(p, "%s: its file system refuses O_DIRECT; --buffered reads without it",
                     source_path(s, shard));
    else if (r)
        problems_add(p, "%s: %s", source_path(s, shard), strerror(-r));
    return r;
}

static int open_shards(struct source *s, bool buffered, struct problems *p)
{
    const struct shape *h = s->shape;
    for (uint32_t layer = h->dense_layers; layer < h->layers; layer++)
        for (uint32_t expert = 0; expert < h->experts; expert++)
            for (int part = 0; part < SOURCE_PARTS; part++) {
                if (!source_bands(s, layer, expert))
                    break;
                int r = open_shard(s, place_of(s, layer, expert)->shard[part], buffered, p);
                if (r)
                    return r;
            }
    return 0;
}

int source_open(struct source *s, const struct checkpoint *c, const struct tile_set *tiles,
                bool buffered, struct memory *m, struct problems *p)
{
    const struct shape *h = &c->shape;
    size_t experts = (size_t)(h->layers - h->dense_layers) * h->experts;
    void *place;

    *s = (struct source){.checkpoint = c, .shape = h, .tiles = *tiles};
    int r = memory_take(m, "expert index", experts * sizeof *s->place, &place);
    if (r) {
        problems_add(p, "--memory: no room for the index of experts (%zu bytes)",
                     experts * sizeof *s->place);
        return r;
    }
    s->place = place;
    s->shards = safetensors_shards(c->tensors);
    s->reads_most = 4 * ((h->bands + 1) / 2) + 2;
    s->fd = malloc((s->shards + 1) * sizeof *s->fd);
    if (!s->fd)
        return -ENOMEM;
    for (size_t i = 0; i < s->shards; i++)
        s->fd[i] = -1;
    r = find_all(s, p);
    if (!r)
        r = open_shards(s, buffered, p);
    if (r)
        source_close(s);
    return r;
}

void source_close(struct source *s)
{
    for (size_t i = 0; s->fd && i < s->shards; i++)
        if (s->fd[i] >= 0)
            close(s->fd[i]);
    free(s->fd);
    s->fd = NULL;
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

void source_plan(const struct source *s, const uint32_t layer_expert[2], uint64_t bands,
                 struct source_plan *ret_plan)
{
    struct fragment f[SOURCE_READS];
    const struct source_place *place = place_of(s, layer_expert[0], layer_expert[1]);
    struct source_read *r = NULL;
    size_t count = 0, at = 0;

    for (int part = 0; part < SOURCE_PARTS; part++)
        count = cut_part(s, place, part, bands, f, count);
    ret_plan->reads = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t end = f[i].offset + f[i].length;
        if (r && r->shard == f[i].shard &&
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
static const uint8_t *locate(const struct source_plan *plan, uint16_t shard, uint64_t offset,
                             const uint8_t *slot)
{
    for (size_t i = 0; i < plan->reads; i++) {
        const struct source_read *r = &plan->read[i];
        if (r->shard == shard && offset >= r->offset && offset < r->offset + r->length)
            return slot + r->at + (offset - disk_floor(r->offset));
    }
    abort(); /* a tile that its own plan does not read: our bug */
}

struct ffn_tile source_tile(const struct source *s, const struct source_plan *plan,
                            const uint32_t layer_expert_band[3], const uint8_t *slot)
{
    const struct shape *h = s->shape;
    const struct source_place *place = place_of(s, layer_expert_band[0], layer_expert_band[1]);
    const uint8_t *part[SOURCE_PARTS];
    uint32_t band = layer_expert_band[2];

    for (int i = 0; i < SOURCE_PARTS; i++) {
        uint64_t skip = is_down(i) ? 0 : (uint64_t)band * h->band * row_bytes(h, i);
        part[i] = locate(plan, place->shard[i], place->offset[i] + skip, slot);
    }
    return (struct ffn_tile){
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

uint64_t source_position(const struct source *s, uint32_t layer, uint32_t expert)
{
    const struct source_place *place = place_of(s, layer, expert);
    return (uint64_t)place->shard[W1] << 48 | place->offset[W1];
}

const char *source_path(const struct source *s, uint16_t shard)
{
    return safetensors_path(s->checkpoint->tensors, shard);
}
