/*
 * Disk reads through libaio, the only file that knows it.
 *
 * A read is in one of three places: `waiting` (in order, for a free slot), in the kernel, or
 * `finished` (in the order of completion). Only the thread that owns the disk moves it. A read
 * that came back short goes on at the last whole page it has, at the head of the line: O_DIRECT
 * takes no other offset. Coming back without a byte more than before means the end of the file,
 * which is fine when the wanted bytes are there and only the widening hit the end.
 */
#include "base/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <libaio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

#define SUBMIT_BATCH 64
#define PAUSE        0.001 /* seconds, when the kernel has no room for a single request */

struct line {
    struct disk_read *head, *tail;
};

struct disk {
    io_context_t kernel;
    unsigned depth, flying;
    struct iocb *slot;     /* depth of them */
    struct iocb **idle;    /* depth - flying of them */
    struct io_event *news; /* depth of them */
    struct line waiting, finished;
    size_t pending;
};

static void line_append(struct line *l, struct disk_read *r)
{
    r->next = NULL;
    if (l->head)
        l->tail->next = r;
    else
        l->head = r;
    l->tail = r;
}

static void line_prepend(struct line *l, struct disk_read *r)
{
    r->next = l->head;
    l->head = r;
    if (!r->next)
        l->tail = r;
}

static struct disk_read *line_pop(struct line *l)
{
    struct disk_read *r = l->head;

    if (r)
        l->head = r->next;
    return r;
}

static void line_remove(struct line *l, struct disk_read *r)
{
    struct disk_read **at = &l->head, *before = NULL;

    while (*at != r) {
        before = *at;
        at = &before->next;
    }
    *at = r->next;
    if (l->tail == r)
        l->tail = before;
}

int disk_open(struct disk **ret_disk, unsigned depth)
{
    int error = -ENOMEM;
    struct disk *d = calloc(1, sizeof *d);

    if (!d)
        return error;
    d->depth = depth > 0 ? depth : 1;
    d->slot = calloc(d->depth, sizeof *d->slot);
    d->idle = calloc(d->depth, sizeof(struct iocb *));
    d->news = calloc(d->depth, sizeof *d->news);
    if (!d->slot || !d->idle || !d->news)
        goto fail;
    for (unsigned i = 0; i < d->depth; i++)
        d->idle[i] = &d->slot[i];
    error = io_setup((int)d->depth, &d->kernel);
    if (error)
        goto fail;
    *ret_disk = d;
    return 0;
fail:
    disk_close(d);
    return error;
}

int disk_file(const char *path, bool buffered, int *ret_fd)
{
    struct stat st;

    /* Asked first: O_DIRECT on a folder fails like O_DIRECT on a file system without it. */
    if (stat(path, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
        return -ENOTBLK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | (buffered ? 0 : O_DIRECT));
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

static size_t skip_of(const struct disk_read *r)
{
    return (size_t)(r->offset - disk_floor(r->offset));
}

static void finish(struct disk *d, struct disk_read *r, int error)
{
    r->error = error;
    r->skip = skip_of(r);
    r->ended = thread_now();
    line_append(&d->finished, r);
}

/* --- into the kernel --- */

/* Moves reads from the head of the line into idle slots. */
static unsigned fill_slots(struct disk *d, struct iocb **batch, unsigned most)
{
    unsigned count = 0;
    double now = thread_now();

    while (count < most && d->flying + count < d->depth && d->waiting.head) {
        struct disk_read *r = line_pop(&d->waiting);
        struct iocb *slot = d->idle[d->depth - d->flying - count - 1];
        size_t from = (size_t)disk_floor(r->done);
        io_prep_pread(slot, r->fd, (char *)r->buffer + from,
                      disk_span(r->offset, r->length) - from,
                      (long long)(disk_floor(r->offset) + from));
        slot->data = r;
        if (r->started == 0)
            r->started = now;
        batch[count++] = slot;
    }
    return count;
}

/* Starts what the depth allows. Returns early when the kernel has no room just now. */
static void start_waiting(struct disk *d)
{
    struct iocb *batch[SUBMIT_BATCH];

    while (d->waiting.head && d->flying < d->depth) {
        unsigned count = fill_slots(d, batch, SUBMIT_BATCH);
        int taken = io_submit(d->kernel, count, batch);
        unsigned gone = taken > 0 ? (unsigned)taken : 0;
        bool refused = taken < 0 && taken != -EAGAIN && taken != -EINTR;
        d->flying += gone;
        for (unsigned i = count; i > gone + refused; i--)
            line_prepend(&d->waiting, batch[i - 1]->data);
        if (refused)
            finish(d, batch[0]->data, taken); /* an error is always the first one's */
        else if (gone == 0 && taken != -EINTR)
            return;
    }
}

void disk_submit(struct disk *d, struct disk_read *r)
{
    r->error = 0;
    r->fetched = 0;
    r->started = r->ended = 0;
    r->done = 0;
    r->retried = false;
    d->pending++;
    if (r->length == 0 || r->length > SIZE_MAX / 4 || r->offset > INT64_MAX - 2 * DISK_PAGE ||
        r->length > INT64_MAX - 2 * DISK_PAGE - r->offset) {
        r->started = thread_now();
        finish(d, r, -EINVAL);
        return;
    }
    line_append(&d->waiting, r);
    start_waiting(d);
}

/* --- and back --- */

static void take_result(struct disk *d, struct disk_read *r, long result)
{
    size_t before = r->done;

    if (result < 0) {
        bool again = result == -EINTR || result == -EAGAIN || (result == -EIO && !r->retried);
        if (result == -EIO)
            r->retried = true;
        if (again)
            line_prepend(&d->waiting, r);
        else
            finish(d, r, (int)result);
        return;
    }
    r->fetched += (uint64_t)result;
    r->done = (size_t)disk_floor(before) + (size_t)result;
    if (r->done >= skip_of(r) + r->length)
        finish(d, r, 0);
    else if (r->done <= before)
        finish(d, r, -ENODATA);
    else
        line_prepend(&d->waiting, r);
}

/* Takes what the kernel has finished, waiting for the first at most `seconds` (negative: until
 * it comes), and uses the slots that became free. */
static void collect(struct disk *d, double seconds)
{
    struct timespec wait = {0};

    if (seconds > 0) {
        wait.tv_sec = (time_t)seconds;
        wait.tv_nsec = (long)((seconds - (double)wait.tv_sec) * 1e9);
    }
    int count = io_getevents(d->kernel, seconds != 0, (long)d->depth, d->news,
                             seconds < 0 ? NULL : &wait);
    for (int i = 0; i < count; i++) {
        d->flying--;
        d->idle[d->depth - d->flying - 1] = d->news[i].obj;
        take_result(d, d->news[i].data, (long)d->news[i].res);
    }
    start_waiting(d);
}

/* One wait, of at most `seconds`, for something to happen. */
static void wait_once(struct disk *d, double seconds)
{
    if (d->flying > 0) {
        collect(d, seconds);
        return;
    }
    struct timespec pause = {.tv_nsec = (long)(PAUSE * 1e9)};
    nanosleep(&pause, NULL);
    start_waiting(d);
}

struct disk_read *disk_reap(struct disk *d, double seconds)
{
    double end = seconds > 0 ? thread_now() + seconds : 0;

    if (d->flying > 0)
        collect(d, 0); /* also when one is there already: its neighbours' slots must not idle */
    while (!d->finished.head && d->pending > 0 && seconds != 0) {
        double left = seconds < 0 ? -1 : end - thread_now();
        if (seconds > 0 && left <= 0)
            break;
        wait_once(d, left);
    }
    struct disk_read *r = line_pop(&d->finished);
    if (r)
        d->pending--;
    return r;
}

int disk_read_now(struct disk *d, struct disk_read *r)
{
    disk_submit(d, r);
    while (r->ended == 0)
        wait_once(d, -1);
    line_remove(&d->finished, r);
    d->pending--;
    return r->error;
}

size_t disk_pending(const struct disk *d)
{
    return d->pending;
}

void disk_close(struct disk *d)
{
    if (!d)
        return;
    d->waiting.head = NULL;
    while (d->flying > 0) {
        int count = io_getevents(d->kernel, 1, (long)d->depth, d->news, NULL);
        d->flying -= count > 0 ? (unsigned)count : 0;
    }
    if (d->kernel)
        io_destroy(d->kernel);
    free(d->slot);
    free(d->idle);
    free(d->news);
    free(d);
}
