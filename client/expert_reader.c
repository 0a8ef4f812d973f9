/* Slots are a ring: the expert of number n is in slot n mod EXPERT_READER_AHEAD. */
#include "client/expert_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { W1, S1, W2, S2, W3, S3 };

static bool is_down(int part)
{
    return part == W2 || part == S2;
}

static void part_shape(const struct shape *s, int part, uint32_t ret_shape[2])
{
    uint32_t cols = is_down(part) ? s->expert_width : s->latent;
    ret_shape[0] = is_down(part) ? s->latent : s->expert_width;
    ret_shape[1] = part % 2 ? cols / 32 : cols / 2;
}

static size_t slot_bytes(const struct shape *s)
{
    size_t bytes = 0;
    for (int i = 0; i < REGION_PARTS; i++) {
        uint32_t shape[2];
        part_shape(s, i, shape);
        bytes += disk_span(DISK_PAGE - 1, (size_t)shape[0] * shape[1]);
    }
    return bytes;
}

static void place_of(const struct expert_reader *r, uint64_t number, uint32_t ret_place[3])
{
    region_place(r->region, number * (r->region->tiles / r->experts), ret_place);
}

static int open_shard(struct expert_reader *r, uint16_t shard, struct problems *p)
{
    const char *path = safetensors_path(r->checkpoint->tensors, shard);
    if (r->fd[shard] >= 0)
        return 0;
    int error = disk_file(path, r->buffered, &r->fd[shard]);
    if (error == -EINVAL)
        problems_add(p, "%s: its file system refuses O_DIRECT; --buffered reads without it",
                     path);
    else if (error)
        problems_add(p, "%s: %s", path, strerror(-error));
    return error;
}

static int start_part(struct expert_reader *r, struct expert_reader_slot *slot, int part,
                      const uint32_t place[3], struct problems *p)
{
    static const char *const name[] = {"w1.weight_packed", "w1.weight_scale",
                                       "w2.weight_packed", "w2.weight_scale",
                                       "w3.weight_packed", "w3.weight_scale"};
    char text[160];
    uint32_t shape[2];
    uint8_t *buffer = part ? (uint8_t *)slot->read[part - 1].buffer +
                                 disk_span(DISK_PAGE - 1, slot->read[part - 1].length)
                           : slot->bytes;
    part_shape(&r->checkpoint->shape, part, shape);
    snprintf(text, sizeof text, "language_model.model.layers.%u.block_sparse_moe.experts.%u.%s",
             place[0], place[1], name[part]);
    const struct safetensors_tensor *t =
        checkpoint_tensor(r->checkpoint, text, SAFETENSORS_U8, shape, 2, p);
    if (!t)
        return -EINVAL;
    int error = open_shard(r, t->shard, p);
    if (error)
        return error;
    slot->read[part] = (struct disk_read){.fd = r->fd[t->shard],
                                          .offset = t->offset,
                                          .length = t->bytes,
                                          .buffer = buffer,
                                          .owner = slot};
    slot->part[part] = buffer + (t->offset - disk_floor(t->offset));
    slot->left++;
    disk_submit(r->disk, &slot->read[part]);
    return 0;
}

/* Keeps the ring full. */
static int start_some(struct expert_reader *r, struct problems *p)
{
    int error = 0;
    for (; !error && r->next < r->experts && r->next < r->expert + EXPERT_READER_AHEAD;
         r->next++) {
        struct expert_reader_slot *slot = &r->slot[r->next % EXPERT_READER_AHEAD];
        uint32_t place[3];
        place_of(r, r->next, place);
        slot->error = 0;
        for (int part = 0; !error && part < REGION_PARTS; part++)
            error = start_part(r, slot, part, place, p);
    }
    return error;
}

int expert_reader_open(struct expert_reader *r, const struct checkpoint *c,
                       const struct region *region, struct expert_reader_options o,
                       struct memory *m, struct problems *p)
{
    size_t shards = safetensors_shards(c->tensors);
    void *bytes;
    *r = (struct expert_reader){.checkpoint = c,
                                .region = region,
                                .next = o.first,
                                .expert = o.first - 1, /* none was given yet */
                                .buffered = o.buffered};
    r->experts = region->tiles / (uint64_t)__builtin_popcountll(region->bands);
    int error = memory_take(m, "experts", EXPERT_READER_AHEAD * slot_bytes(&c->shape), &bytes);
    r->fd = malloc((shards + 1) * sizeof *r->fd);
    if (!error && r->fd)
        error = disk_open(&r->disk, EXPERT_READER_AHEAD * REGION_PARTS);
    if (error || !r->fd) {
        problems_add(p, "reading the checkpoint: %s", strerror(error ? -error : ENOMEM));
        free(r->fd);
        r->fd = NULL;
        return error ? error : -ENOMEM;
    }
    for (size_t i = 0; i <= shards; i++)
        r->fd[i] = -1;
    for (size_t i = 0; i < EXPERT_READER_AHEAD; i++)
        r->slot[i].bytes = (uint8_t *)bytes + i * slot_bytes(&c->shape);
    return 0;
}

void expert_reader_close(struct expert_reader *r)
{
    disk_close(r->disk);
    r->disk = NULL;
    for (size_t i = 0; r->fd && i < safetensors_shards(r->checkpoint->tensors); i++)
        if (r->fd[i] >= 0)
            close(r->fd[i]);
    free(r->fd);
    r->fd = NULL;
}

static void reap(struct expert_reader *r)
{
    struct disk_read *read = disk_reap(r->disk, -1);
    struct expert_reader_slot *slot = read->owner;
    slot->left--;
    if (read->error)
        slot->error = read->error;
}

int expert_reader_next(struct expert_reader *r, uint32_t ret_layer_expert[2],
                       struct problems *p)
{
    uint32_t place[3];
    r->expert++;
    if (r->expert == r->experts)
        return 0;
    int error = start_some(r, p);
    if (error)
        return error;
    struct expert_reader_slot *slot = &r->slot[r->expert % EXPERT_READER_AHEAD];
    while (slot->left)
        reap(r);
    place_of(r, r->expert, place);
    if (slot->error) {
        problems_add(p, "layer %u expert %u: %s", place[0], place[1], strerror(-slot->error));
        return slot->error;
    }
    ret_layer_expert[0] = place[0];
    ret_layer_expert[1] = place[1];
    return 1;
}

struct region_tile expert_reader_tile(const struct expert_reader *r, uint32_t band)
{
    const struct expert_reader_slot *slot = &r->slot[r->expert % EXPERT_READER_AHEAD];
    const struct shape *s = &r->checkpoint->shape;
    size_t rise = (size_t)band * s->band * s->latent, fall = (size_t)band * s->band;
    return (struct region_tile){
        .w1 = slot->part[W1] + rise / 2,
        .s1 = slot->part[S1] + rise / 32,
        .w3 = slot->part[W3] + rise / 2,
        .s3 = slot->part[S3] + rise / 32,
        .w2 = slot->part[W2] + fall / 2,
        .s2 = slot->part[S2] + fall / 32,
        .w2_stride = s->expert_width / 2,
        .s2_stride = s->expert_width / 32,
    };
}
