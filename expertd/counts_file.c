/* A head of 64 bytes and the tables as they are in memory, under a checksum of all. */
#include "expertd/counts_file.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "proto/sum.h"

#define MAGIC   0x544e554f43504b01ull
#define VERSION 1u

struct head {
    uint64_t magic;
    uint32_t version, tables, layers, experts;
    uint8_t digest[CHECKPOINT_DIGEST];
    uint8_t sum[SUM_BYTES]; /* of the tables */
    uint8_t zero[8];
};

_Static_assert(sizeof(struct head) == 64, "the head has no holes");

static size_t table_bytes(const struct worth *w)
{
    return w->layers * (w->experts * sizeof(struct worth_entry) + sizeof(uint32_t));
}

static struct head make_head(const uint8_t *digest, const struct worth *w, size_t tables)
{
    struct head h = {.magic = MAGIC,
                     .version = VERSION,
                     .tables = (uint32_t)tables,
                     .layers = w->layers,
                     .experts = w->experts};
    memcpy(h.digest, digest, sizeof h.digest);
    return h;
}

/* Numbers that ageing and comparing can live with. */
static bool sound(const struct worth *w, const uint8_t *table)
{
    const struct worth_entry *e = (const struct worth_entry *)table;
    size_t n = (size_t)w->layers * w->experts;
    const uint32_t *visits = (const uint32_t *)(e + n);
    for (size_t i = 0; i < n; i++)
        if (!(e[i].fast >= 0) || !(e[i].slow >= 0) || isinf(e[i].fast) || isinf(e[i].slow) ||
            e[i].visit > visits[i / w->experts])
            return false;
    return true;
}

static bool fits(struct head wanted, const uint8_t *bytes, size_t length)
{
    sum_of(bytes + sizeof wanted, length - sizeof wanted, wanted.sum);
    return !memcmp(bytes, &wanted, sizeof wanted);
}

int counts_file_load(const char *path, const uint8_t digest[CHECKPOINT_DIGEST],
                     struct worth *const *worth, size_t tables)
{
    size_t each = table_bytes(worth[0]), length, expected = sizeof(struct head) + tables * each;
    struct head wanted = make_head(digest, worth[0], tables);
    char *text;
    int r = file_read(path, expected, &text, &length);
    if (r)
        return r == -ENOENT ? r : -EBADMSG;
    const uint8_t *bytes = (const uint8_t *)text;
    bool good = length == expected && fits(wanted, bytes, length);
    for (size_t i = 0; good && i < tables; i++)
        good = sound(worth[i], bytes + sizeof wanted + i * each);
    for (size_t i = 0; good && i < tables; i++)
        memcpy(worth[i]->entry, bytes + sizeof wanted + i * each, each);
    free(text);
    return good ? 0 : -EBADMSG;
}

int counts_file_save(const char *path, const uint8_t digest[CHECKPOINT_DIGEST],
                     struct worth *const *worth, size_t tables)
{
    size_t each = table_bytes(worth[0]), length = sizeof(struct head) + tables * each;
    struct head h = make_head(digest, worth[0], tables);
    uint8_t *bytes = malloc(length);
    if (!bytes)
        return -ENOMEM;
    for (size_t i = 0; i < tables; i++)
        memcpy(bytes + sizeof h + i * each, worth[i]->entry, each);
    sum_of(bytes + sizeof h, length - sizeof h, h.sum);
    memcpy(bytes, &h, sizeof h);
    int r = file_write(path, bytes, length, 0644);
    free(bytes);
    return r;
}
