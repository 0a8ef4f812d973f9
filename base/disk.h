/*
 * Reads from one set of files with O_DIRECT and libaio, many in flight.
 *
 * A disk belongs to one thread, which submits and reaps. A read is any byte range of a file
 * and a buffer; the disk widens the range to whole pages (DISK_PAGE), so a buffer needs
 * disk_span() bytes and the wanted bytes begin `skip` bytes into it. Short reads are continued,
 * EINTR and EAGAIN hidden, EIO retried once and then reported as that read's error. A read in
 * flight owns its buffer until it is reaped.
 */
#ifndef BASE_DISK_H
#define BASE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_PAGE 4096

struct disk;

struct disk_read {
    /* The caller's: */
    int fd;          /* from disk_file() */
    uint64_t offset; /* first byte wanted */
    size_t length;   /* bytes wanted, > 0 */
    void *buffer;    /* DISK_PAGE-aligned, disk_span(offset, length) bytes */
    void *owner;     /* whatever the caller likes */
    /* The disk's, valid when reaped: */
    int error;        /* 0 or negative errno; -ENODATA: the file ends before the range does */
    size_t skip;      /* wanted bytes start at buffer + skip */
    uint64_t fetched; /* bytes that crossed the bus for it */
    double started, ended; /* monotonic seconds */
    /* private */
    size_t done;
    bool retried;
    struct disk_read *next;
};

static inline uint64_t disk_floor(uint64_t offset)
{
    return offset & ~(uint64_t)(DISK_PAGE - 1);
}

static inline size_t disk_span(uint64_t offset, size_t length)
{
    return (size_t)(disk_floor(offset + length + DISK_PAGE - 1) - disk_floor(offset));
}

/* At most `depth` reads are under way in the kernel; more wait in order inside. -EAGAIN: the
 * system's requests are used up (fs.aio-max-nr). */
int disk_open(struct disk **ret_disk, unsigned depth);
/* Waits for what is in flight and forgets what waits; nothing of it is given back. NULL is
 * fine. */
void disk_close(struct disk *d);

/* Opens a file or block device for this kind of reading, to be closed with close(). `buffered`:
 * without O_DIRECT. -EINVAL: the file system refuses O_DIRECT (say so and offer --buffered);
 * -EISDIR, -ENOTBLK: neither a file nor a block device; else what the system says. */
int disk_file(const char *path, bool buffered, int *ret_fd);

/* Queues one read and starts what the depth allows. Does not wait for the disk. */
void disk_submit(struct disk *d, struct disk_read *r);

/* Gives one finished read, waiting at most `seconds` (negative: until one is there; NULL when
 * none came or none is under way). */
struct disk_read *disk_reap(struct disk *d, double seconds);

/* Reads queued or in flight. */
size_t disk_pending(const struct disk *d);

/* One whole range, waited for; for use at start. The buffer rules are the same. Other reads
 * stay what they are, and are still to be reaped. Gives the read's error. */
int disk_read_now(struct disk *d, struct disk_read *r);

#endif
