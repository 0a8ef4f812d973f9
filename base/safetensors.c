/*
 * The index of a checkpoint's shards.
 *
 * Two short-lived threads take the shards in turn: JSON is 76 MB for K3 and all of the start-up
 * time. A shard's entries stay where they were parsed; the index over them is one table of open
 * addressing, at most half full, and names are not kept. Where a name is needed to say what is
 * wrong, the header is read again.
 */
#include "base/safetensors.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/jsontext.h"
#include "base/jsontext_arena.h"
#include "base/safetensors_header.h"
#include "base/thread.h"

#define SUFFIX      ".safetensors"
#define SHARDS_MOST 65535
#define THREADS     2
#define TREE_MOST   ((size_t)256 << 20) /* of addresses, for one header; K3 needs 12 MB */

struct shard {
    char *path;
    struct safetensors_header header;
    XXH128_hash_t digest; /* of the JSON */
    int error;
    struct problems *problems; /* when there are some */
};

struct slot {
    uint32_t entry;
    uint16_t shard;
    bool used;
};

struct safetensors {
    struct shard *shard;
    size_t shards, tensors;
    struct slot *slot;
    size_t mask; /* slots - 1, a power of two less one */
};

/* --- one shard --- */

static int check_length(const char *path, uint64_t length, uint64_t file_bytes,
                        struct problems *p)
{
    uint64_t most = file_bytes - SAFETENSORS_LENGTH_BYTES;

    if (most > SAFETENSORS_HEADER_MOST)
        most = SAFETENSORS_HEADER_MOST;
    if (length <= most)
        return 0;
    problems_add(p, "%s: header length: expected at most %" PRIu64 ", found %" PRIu64, path,
                 most, length);
    return -EINVAL;
}

static int read_json(const char *path, int fd, struct safetensors_json *ret_json,
                     struct problems *p)
{
    struct stat st;
    uint64_t length;

    if (fstat(fd, &st) < 0)
        return -errno;
    uint64_t size = (uint64_t)st.st_size;
    if (!S_ISREG(st.st_mode)) {
        problems_add(p, "%s: expected a regular file, found something else", path);
        return -EINVAL;
    }
    if (size < SAFETENSORS_LENGTH_BYTES) {
        problems_add(p, "%s: expected at least 8 bytes, found %" PRIu64, path, size);
        return -EINVAL;
    }
    int error = file_pread(fd, &length, SAFETENSORS_LENGTH_BYTES, 0);
    if (error)
        return error;
    length = le64toh(length);
    error = check_length(path, length, size, p);
    if (error)
        return error;
    char *text = malloc(length + 1);
    if (!text)
        return -ENOMEM;
    error = file_pread(fd, text, length, SAFETENSORS_LENGTH_BYTES);
    if (error) {
        free(text);
        return error;
    }
    *ret_json =
        (struct safetensors_json){.file = path,
                                  .text = text,
                                  .length = length,
                                  .data_bytes = size - SAFETENSORS_LENGTH_BYTES - length};
    return 0;
}

/* Reads the JSON of a shard; its text is malloc'ed. */
static int open_json(const char *path, struct safetensors_json *ret_json, struct problems *p)
{
    size_t said = p->count;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hang us */
    int error = fd < 0 ? -errno : read_json(path, fd, ret_json, p);

    if (fd >= 0)
        close(fd);
    if (error && p->count == said)
        problems_add(p, "%s: cannot be read: %s", path, strerror(-error));
    return error;
}

static int load_shard(struct shard *s, struct jsontext_arena *arena, struct problems *p)
{
    struct safetensors_json json = {0};
    int error = open_json(s->path, &json, p);

    if (error)
        return error;
    error = safetensors_header_parse(&json, arena, &s->header, p);
    s->digest = XXH3_128bits(json.text, json.length);
    free(json.text);
    return error;
}

/* --- all shards, two at a time --- */

struct loading {
    struct thread thread;
    struct safetensors *s;
    struct jsontext_arena arena;
    atomic_size_t *next;
};

static void load_some(void *context)
{
    struct loading *l = context;
    struct problems problems;
    size_t i;

    problems_init(&problems);
    while ((i = atomic_fetch_add(l->next, 1)) < l->s->shards) {
        struct shard *s = &l->s->shard[i];
        s->error = load_shard(s, &l->arena, &problems);
        if (problems.count == 0)
            continue;
        s->problems = malloc(sizeof problems);
        if (s->problems)
            memcpy(s->problems, &problems, sizeof problems);
        problems_init(&problems);
    }
}

static int load_shards(struct safetensors *s)
{
    struct loading loading[THREADS];
    atomic_size_t next = 0;
    size_t opened = 0, started = 0;
    int error = 0;

    for (; opened < THREADS && !error; opened += !error) {
        loading[opened] = (struct loading){.s = s, .next = &next};
        error = jsontext_arena_open(&loading[opened].arena, TREE_MOST);
    }
    while (started < opened && !error) {
        error =
            thread_start(&loading[started].thread, "safetensors", load_some, &loading[started]);
        started += !error;
    }
    for (size_t i = 0; i < started; i++)
        thread_join(&loading[i].thread);
    for (size_t i = 0; i < opened; i++)
        jsontext_arena_close(&loading[i].arena);
    return error;
}

/* Puts the shards' sentences into `p` in name order, and gives the first error. */
static int gather_problems(const struct safetensors *s, struct problems *p)
{
    int error = 0;

    for (size_t i = 0; i < s->shards; i++) {
        const struct shard *shard = &s->shard[i];
        if (shard->error && !error)
            error = shard->error;
        if (!shard->problems)
            continue;
        size_t before = p->count;
        char *rest = shard->problems->text, *line;
        while ((line = strsep(&rest, "\n")))
            problems_add(p, "%s", line);
        p->count = before + shard->problems->count;
    }
    return error;
}

/* --- the index --- */

static const struct safetensors_entry *entry_at(const struct safetensors *s,
                                                const struct slot *slot)
{
    return &s->shard[slot->shard].header.entry[slot->entry];
}

/* The slot that holds the name, or the empty one where it would go. */
static struct slot *find_slot(const struct safetensors *s, XXH128_hash_t name)
{
    for (size_t i = name.low64 & s->mask;; i = (i + 1) & s->mask)
        if (!s->slot[i].used || XXH128_isEqual(entry_at(s, &s->slot[i])->name, name))
            return &s->slot[i];
}

/* Names the tensors of a shard that the index has from another one. */
static int say_duplicates(const struct safetensors *s, size_t shard, struct problems *p)
{
    const char *name, *path = s->shard[shard].path;
    struct safetensors_json json = {0};
    json_t *value;
    int error = open_json(path, &json, p);

    if (error)
        return error;
    json_t *tree = jsontext_parse(path, json.text, json.length, p);
    free(json.text);
    json_object_foreach(tree, name, value)
    {
        const struct slot *slot = find_slot(s, safetensors_header_name(name));
        if (slot->used && slot->shard != shard)
            problems_add(p, "%s: tensor %.200s: expected in one shard, found also in %s", path,
                         name, s->shard[slot->shard].path);
    }
    json_decref(tree);
    return -EINVAL;
}

static int index_shard(struct safetensors *s, size_t shard, struct problems *p)
{
    struct safetensors_header *h = &s->shard[shard].header;
    bool duplicates = false;

    for (size_t i = 0; i < h->count; i++) {
        struct slot *slot = find_slot(s, h->entry[i].name);
        h->entry[i].tensor.shard = (uint16_t)shard;
        if (slot->used)
            duplicates = true;
        else
            *slot = (struct slot){.entry = (uint32_t)i, .shard = (uint16_t)shard, .used = true};
    }
    return duplicates ? say_duplicates(s, shard, p) : 0;
}

static int index_all(struct safetensors *s, struct problems *p)
{
    size_t slots = 16;
    int error = 0;

    for (size_t i = 0; i < s->shards; i++)
        s->tensors += s->shard[i].header.count;
    while (slots < 2 * s->tensors)
        slots *= 2;
    s->slot = calloc(slots, sizeof *s->slot);
    if (!s->slot)
        return -ENOMEM;
    s->mask = slots - 1;
    for (size_t i = 0; i < s->shards; i++) {
        int one = index_shard(s, i, p);
        if (!error)
            error = one;
    }
    return error;
}

/* --- the folder --- */

static int is_shard(const struct dirent *e)
{
    size_t length = strlen(e->d_name), suffix = strlen(SUFFIX);

    return e->d_name[0] != '.' && length > suffix &&
           !strcmp(e->d_name + length - suffix, SUFFIX);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Names the shards; says and gives what is wrong with the folder itself. */
static int list_shards(struct safetensors *s, const char *folder, struct problems *p)
{
    struct dirent **found;
    int count = scandir(folder, &found, is_shard, by_name);
    int error = count < 0 ? -errno : 0;

    if (count < 0) {
        problems_add(p, "%s: cannot be read: %s", folder, strerror(-error));
        return error;
    }
    s->shard = calloc((size_t)count + 1, sizeof *s->shard);
    for (int i = 0; i < count; i++) {
        if (!s->shard || asprintf(&s->shard[i].path, "%s/%s", folder, found[i]->d_name) < 0)
            error = -ENOMEM;
        else
            s->shards = (size_t)i + 1;
        free(found[i]);
    }
    free(found);
    if (!error && (count == 0 || count > SHARDS_MOST)) {
        problems_add(p, "%s: expected 1 to 65535 files *" SUFFIX ", found %d", folder, count);
        error = count == 0 ? -ENOENT : -EINVAL;
    }
    return error;
}

int safetensors_open(struct safetensors **ret_s, const char *folder, struct problems *p)
{
    struct safetensors *s = calloc(1, sizeof *s);
    size_t said = p->count;
    int error = -ENOMEM;

    if (!s)
        goto fail;
    error = list_shards(s, folder, p);
    if (error)
        goto fail;
    error = load_shards(s);
    if (!error)
        error = gather_problems(s, p);
    if (!error)
        error = index_all(s, p);
    if (error)
        goto fail;
    malloc_trim(0); /* the trees' memory, a third of what is held now */
    *ret_s = s;
    return 0;
fail:
    if (p->count == said)
        problems_add(p, "%s: cannot be opened: %s", folder, strerror(-error));
    safetensors_close(s);
    return error;
}

void safetensors_close(struct safetensors *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->shards; i++) {
        free(s->shard[i].path);
        free(s->shard[i].header.entry);
        free(s->shard[i].problems);
    }
    free(s->shard);
    free(s->slot);
    free(s);
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *s, const char *name)
{
    const struct slot *slot = find_slot(s, safetensors_header_name(name));

    return slot->used ? &entry_at(s, slot)->tensor : NULL;
}

size_t safetensors_tensors(const struct safetensors *s)
{
    return s->tensors;
}

size_t safetensors_shards(const struct safetensors *s)
{
    return s->shards;
}

const char *safetensors_path(const struct safetensors *s, size_t shard)
{
    return s->shard[shard].path;
}

void safetensors_digest(const struct safetensors *s, uint8_t ret_digest[16])
{
    XXH3_state_t *state = XXH3_createState();
    XXH128_canonical_t canonical;

    XXH3_128bits_reset(state);
    for (size_t i = 0; i < s->shards; i++) {
        const char *name = strrchr(s->shard[i].path, '/') + 1;
        XXH3_128bits_update(state, name, strlen(name) + 1);
        XXH128_canonicalFromHash(&canonical, s->shard[i].digest);
        XXH3_128bits_update(state, &canonical, sizeof canonical);
    }
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
    memcpy(ret_digest, &canonical, sizeof canonical);
    XXH3_freeState(state);
}

const char *safetensors_dtype_name(enum safetensors_dtype t)
{
    static const char *const name[] = {[SAFETENSORS_F32] = "F32",
                                       [SAFETENSORS_BF16] = "BF16",
                                       [SAFETENSORS_U8] = "U8",
                                       [SAFETENSORS_OTHER] = "other"};

    return (size_t)t < sizeof name / sizeof name[0] ? name[t] : "unknown";
}
