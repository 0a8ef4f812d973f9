/* Embedding rows: see the header. Reads of one step are in flight together. */
#include "trunk/embed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trunk/vectors.h"

#define EMBED_NAME "language_model.model.embed_tokens.weight"

static size_t row_bytes(const struct shape *s)
{
    return (size_t)s->hidden * sizeof(uint16_t);
}

/* Wherever a row begins in its page. */
static size_t span_most(const struct shape *s)
{
    return disk_span(DISK_PAGE - 1, row_bytes(s));
}

uint64_t embed_bytes(const struct shape *s)
{
    return EMBED_DEPTH * span_most(s);
}

int embed_open(struct embed *e, const struct checkpoint *c, bool buffered, struct memory *m,
               struct problems *p)
{
    const uint32_t dims[2] = {c->shape.vocab, c->shape.hidden};
    void *buffer;
    *e = (struct embed){.checkpoint = c, .fd = -1, .span = span_most(&c->shape)};
    e->tensor = checkpoint_tensor(c, EMBED_NAME, SAFETENSORS_BF16, dims, 2, p);
    if (!e->tensor)
        return -EINVAL;
    const char *path = safetensors_path(c->tensors, e->tensor->shard);
    int r = disk_file(path, buffered, &e->fd);
    if (!r)
        r = disk_open(&e->disk, EMBED_DEPTH);
    if (!r)
        r = memory_take(m, "embedding rows", embed_bytes(&c->shape), &buffer);
    if (r) {
        problems_add(p, "%s: the embedding cannot be read: %s%s", path, strerror(-r),
                     r == -EINVAL ? " (--buffered does without O_DIRECT)" : "");
        return r;
    }
    e->buffer = buffer;
    return 0;
}

void embed_close(struct embed *e)
{
    if (!e->checkpoint)
        return;
    disk_close(e->disk);
    if (e->fd >= 0)
        close(e->fd);
}

static void submit(struct embed *e, size_t slot, uint32_t row, uint32_t token)
{
    size_t bytes = row_bytes(&e->checkpoint->shape);
    e->row[slot] = row;
    e->read[slot] = (struct disk_read){
        .fd = e->fd,
        .offset = e->tensor->offset + (uint64_t)token * bytes,
        .length = bytes,
        .buffer = e->buffer + slot * e->span,
        .owner = &e->row[slot],
    };
    disk_submit(e->disk, &e->read[slot]);
}

/* Takes one finished read; its slot is free afterwards. */
static int land(struct embed *e, float *out, size_t *ret_slot)
{
    struct disk_read *r = disk_reap(e->disk, -1);
    uint32_t *row = r->owner;
    size_t n = e->checkpoint->shape.hidden;
    *ret_slot = (size_t)(row - e->row);
    e->bytes_read += r->fetched;
    if (!r->error)
        vectors_widen(out + *row * n, (const uint8_t *)r->buffer + r->skip, n);
    else
        snprintf(e->error, sizeof e->error, "%s: an embedding row cannot be read: %s",
                 safetensors_path(e->checkpoint->tensors, e->tensor->shard),
                 strerror(-r->error));
    return r->error;
}

int embed_rows(struct embed *e, const uint32_t *token, uint32_t rows, float *out)
{
    int error = 0;
    size_t slot;
    uint32_t next = 0;
    for (; next < rows && next < EMBED_DEPTH; next++)
        submit(e, next, next, token[next]);
    while (disk_pending(e->disk)) {
        int r = land(e, out, &slot);
        error = error ? error : r;
        if (next < rows && !error) {
            submit(e, slot, next, token[next]);
            next++;
        }
    }
    return error;
}
