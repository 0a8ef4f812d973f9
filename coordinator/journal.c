/* See the header. */
#include "coordinator/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"

#define JOURNAL_MAGIC 0x4c4e4a4bu /* "KJNL" in the file */
#define JOURNAL_HEAD  16
#define JOURNAL_TAIL  8
#define JOURNAL_MOST  ((size_t)1 << 32)

struct journal {
    int fd;
    char *path;
    pthread_mutex_t lock;
    uint64_t end; /* bytes that are good */
    char *buffer; /* appended, not written */
    size_t used, room;
    bool broken;
};

static void put_u32(char *at, uint32_t v)
{
    memcpy(at, &v, sizeof v);
}

static void put_hash(char *at, const char *bytes, size_t length)
{
    uint64_t h = XXH3_64bits(bytes, length);

    memcpy(at, &h, sizeof h);
}

static bool hash_is(const char *at, const char *bytes, size_t length)
{
    uint64_t h = XXH3_64bits(bytes, length);

    return memcmp(at, &h, sizeof h) == 0;
}

static bool all_zero(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static int damaged(const struct journal *j, size_t at, const char *what, struct problems *p)
{
    problems_add(p, "%s is damaged at byte %zu: %s; move it away to start without it", j->path,
                 at, what);
    return -EINVAL;
}

struct span {
    const char *bytes;
    size_t length;
};

/* Reads the record at *at and moves *at behind it; leaves it there for a torn tail. */
static int read_record(struct journal *j, const struct span *file, size_t *at,
                       json_t **ret_record, struct problems *p)
{
    const char *head = file->bytes + *at;
    size_t left = file->length - *at, whole;
    uint32_t magic, body;

    *ret_record = NULL;
    if (left < JOURNAL_HEAD || all_zero(head, left))
        return 0;
    memcpy(&magic, head, sizeof magic);
    memcpy(&body, head + 4, sizeof body);
    if (magic != JOURNAL_MAGIC || !hash_is(head + 8, head, 8))
        return damaged(j, *at, "no record begins there", p);
    whole = (size_t)JOURNAL_HEAD + body + JOURNAL_TAIL;
    if (left < whole)
        return 0;
    if (!hash_is(head + JOURNAL_HEAD + body, head + JOURNAL_HEAD, body))
        return left == whole ? 0 : damaged(j, *at, "the checksum is wrong", p);
    *ret_record = json_loadb(head + JOURNAL_HEAD, body, JSON_ALLOW_NUL, NULL);
    if (*ret_record == NULL)
        return damaged(j, *at, "it is not JSON", p);
    *at += whole;
    return 0;
}

static int read_all(struct journal *j, void (*each)(void *, const json_t *), void *context,
                    struct problems *p)
{
    char *bytes;
    size_t length, at = 0;
    struct span file;
    int error = file_read(j->path, JOURNAL_MOST, &bytes, &length);

    if (error != 0) {
        problems_add(p, "%s: %s", j->path, strerror(-error));
        return error;
    }
    file = (struct span){bytes, length};
    for (;;) {
        json_t *record;

        error = read_record(j, &file, &at, &record, p);
        if (record == NULL)
            break;
        each(context, record);
        json_decref(record);
    }
    free(bytes);
    j->end = at;
    if (error == 0 && at < length && ftruncate(j->fd, (off_t)at) != 0)
        error = -errno;
    return error;
}

int journal_open(struct journal **ret_journal, const char *path,
                 void (*each)(void *context, const json_t *record), void *context,
                 struct problems *p)
{
    struct journal *j = calloc(1, sizeof *j);
    int error = -ENOMEM;

    if (j == NULL)
        return error;
    pthread_mutex_init(&j->lock, NULL);
    j->fd = -1;
    j->path = strdup(path);
    if (j->path == NULL)
        goto fail;
    j->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (j->fd < 0 || flock(j->fd, LOCK_EX | LOCK_NB) != 0) {
        error = -errno;
        problems_add(p, "%s: %s", path,
                     error == -EWOULDBLOCK ? "another coordinator uses it" : strerror(-error));
        goto fail;
    }
    error = read_all(j, each, context, p);
    if (error != 0)
        goto fail;
    *ret_journal = j;
    return 0;

fail:
    journal_close(j);
    return error;
}

void journal_close(struct journal *j)
{
    if (j == NULL)
        return;
    if (j->fd >= 0)
        close(j->fd);
    pthread_mutex_destroy(&j->lock);
    free(j->path);
    free(j->buffer);
    free(j);
}

/* Room for `more` bytes in the buffer; the lock is held. */
static int make_room(struct journal *j, size_t more)
{
    size_t room = j->room > 0 ? j->room : 4096;
    char *bigger;

    while (room < j->used + more)
        room *= 2;
    if (room == j->room)
        return 0;
    bigger = realloc(j->buffer, room);
    if (bigger == NULL)
        return -ENOMEM;
    j->buffer = bigger;
    j->room = room;
    return 0;
}

int journal_append(struct journal *j, json_t *record)
{
    char *text = record != NULL ? json_dumps(record, JSON_COMPACT) : NULL;
    size_t length = text != NULL ? strlen(text) : 0;
    int error = text != NULL && length <= UINT32_MAX ? 0 : -ENOMEM;

    json_decref(record);
    pthread_mutex_lock(&j->lock);
    if (error == 0)
        error = make_room(j, JOURNAL_HEAD + length + JOURNAL_TAIL);
    if (error == 0) {
        char *at = j->buffer + j->used;

        put_u32(at, JOURNAL_MAGIC);
        put_u32(at + 4, (uint32_t)length);
        put_hash(at + 8, at, 8);
        memcpy(at + JOURNAL_HEAD, text, length);
        put_hash(at + JOURNAL_HEAD + length, text, length);
        j->used += JOURNAL_HEAD + length + JOURNAL_TAIL;
    }
    pthread_mutex_unlock(&j->lock);
    free(text);
    return error;
}

static int write_out(struct journal *j)
{
    for (size_t done = 0; done < j->used;) {
        ssize_t n = pwrite(j->fd, j->buffer + done, j->used - done, (off_t)(j->end + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        done += (size_t)n;
    }
    return fdatasync(j->fd) == 0 ? 0 : -errno;
}

int journal_sync(struct journal *j)
{
    int error = 0;

    pthread_mutex_lock(&j->lock);
    if (j->broken)
        error = -EIO;
    else if (j->used > 0)
        error = write_out(j);
    if (error == 0)
        j->end += j->used;
    else if (ftruncate(j->fd, (off_t)j->end) != 0)
        j->broken = true;
    j->used = 0;
    pthread_mutex_unlock(&j->lock);
    return error;
}

int journal_rewrite(struct journal *j)
{
    int error, fd;

    pthread_mutex_lock(&j->lock);
    error = file_write(j->path, j->buffer != NULL ? j->buffer : "", j->used, 0600);
    fd = error == 0 ? open(j->path, O_RDWR | O_CLOEXEC) : -1;
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        close(j->fd);
        j->fd = fd;
        j->end = j->used;
        j->used = 0;
    } else {
        error = error != 0 ? error : -errno;
        if (fd >= 0)
            close(fd);
    }
    pthread_mutex_unlock(&j->lock);
    return error;
}
