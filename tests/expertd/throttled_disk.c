/*
 * A device serves its reads one after the other, each for as long as its bytes take. They are
 * brought through the page cache when submitted, which is quicker than any rate set here.
 */
#include "tests/expertd/throttled_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/file.h"
#include "base/thread.h"

struct disk {
    double rate, free_at;
    struct disk_read *first, *last;
    size_t pending;
};

static double next_rate = 1e9;

void throttled_disk_rate(double rate)
{
    next_rate = rate;
}

int disk_open(struct disk **ret_disk, unsigned depth)
{
    struct disk *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    d->rate = next_rate;
    *ret_disk = d;
    return 0;
}

void disk_close(struct disk *d)
{
    free(d);
}

int disk_file(const char *path, bool buffered, int *ret_fd)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

void disk_submit(struct disk *d, struct disk_read *r)
{
    size_t span = disk_span(r->offset, r->length);
    double now = thread_now();
    r->skip = r->offset - disk_floor(r->offset);
    r->error = file_pread(r->fd, (char *)r->buffer + r->skip, r->length, r->offset);
    r->fetched = span;
    r->started = now;
    d->free_at = (d->free_at > now ? d->free_at : now) + (double)span / d->rate;
    r->ended = d->free_at;
    r->next = NULL;
    if (d->first)
        d->last->next = r;
    else
        d->first = r;
    d->last = r;
    d->pending++;
}

static void nap(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

struct disk_read *disk_reap(struct disk *d, double seconds)
{
    struct disk_read *r = d->first;
    if (!r)
        return NULL;
    double wait = r->ended - thread_now();
    if (seconds >= 0 && wait > seconds) {
        if (seconds > 0)
            nap(seconds);
        return NULL;
    }
    if (wait > 0)
        nap(wait);
    d->first = r->next;
    d->pending--;
    return r;
}

size_t disk_pending(const struct disk *d)
{
    return d->pending;
}

int disk_read_now(struct disk *d, struct disk_read *r)
{
    disk_submit(d, r);
    disk_reap(d, -1);
    return r->error;
}
