/* The tiles go through O_DIRECT, the head through the page cache and fdatasync. */
#include "client/region_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static int refuse(const struct region_file *f, int error, const char *why, struct problems *p)
{
    problems_add(p, "%s: %s", f->path, why ? why : strerror(-error));
    return error;
}

static int write_all(int fd, const uint8_t *bytes, size_t length, uint64_t offset)
{
    while (length) {
        ssize_t n = pwrite(fd, bytes, length, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        bytes += n;
        length -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

static int open_both(struct region_file *f, const struct region_file_options *o, int mode,
                     struct problems *p)
{
    f->path = o->path;
    f->direct = -1;
    f->fd = open(o->path, mode | O_CLOEXEC, 0644);
    if (f->fd < 0)
        return refuse(f, -errno, NULL, p);
    f->direct = open(o->path, (mode & ~O_CREAT) | O_CLOEXEC | (o->buffered ? 0 : O_DIRECT));
    if (f->direct < 0 && errno == EINVAL)
        return refuse(f, -EINVAL,
                      "its file system refuses O_DIRECT; --buffered works without it", p);
    if (f->direct < 0)
        return refuse(f, -errno, NULL, p);
    return 0;
}

/* ---- what is there --------------------------------------------------------------------- */

/* The same tiles of the same model, however far. */
static bool same_region(const struct region *a, const struct region *b)
{
    struct region x = *a, y = *b;
    uint8_t p[REGION_BLOCK], q[REGION_BLOCK];
    x.done = y.done = 0;
    x.complete = y.complete = true;
    region_encode(&x, p);
    region_encode(&y, q);
    return !memcmp(p, q, REGION_BLOCK);
}

static bool all_zero(const uint8_t *bytes, size_t n)
{
    return !bytes[0] && !memcmp(bytes, bytes + 1, n - 1);
}

/* Sets region from the head when it is the wanted one. -EEXIST when it is something else. */
static int look(struct region_file *f, const struct region *wanted, bool overwrite,
                struct problems *p)
{
    uint8_t block[REGION_BLOCK];
    const char *why = NULL;
    struct region found;
    off_t size = lseek(f->fd, 0, SEEK_END);
    int r = size ? file_pread(f->fd, block, sizeof block, 0) : 0;

    f->region = *wanted;
    if (!size || (!r && all_zero(block, sizeof block)))
        return 0;
    if (!r && !region_decode(&found, block, &why) && same_region(&found, wanted)) {
        f->region = found;
        return 0;
    }
    if (overwrite)
        return 0;
    return refuse(f, -EEXIST,
                  why || r ? "it holds something that is no region; --overwrite replaces it"
                           : "it holds another region; --overwrite replaces it",
                  p);
}

static int make_room(struct region_file *f, struct problems *p)
{
    struct stat st;
    uint64_t bytes = region_bytes(&f->region);
    if (fstat(f->fd, &st))
        return refuse(f, -errno, NULL, p);
    if (S_ISBLK(st.st_mode)) {
        off_t size = lseek(f->fd, 0, SEEK_END);
        if (size >= 0 && (uint64_t)size >= bytes)
            return 0;
        problems_add(p, "%s: it has %lld bytes, the region needs %llu", f->path,
                     (long long)size, (unsigned long long)bytes);
        return -ENOSPC;
    }
    if (fallocate(f->fd, 0, 0, (off_t)bytes) && errno != EOPNOTSUPP)
        return refuse(f, -errno, NULL, p);
    if (ftruncate(f->fd, (off_t)bytes))
        return refuse(f, -errno, NULL, p);
    return 0;
}

static int take_sums(struct region_file *f, struct memory *m, struct problems *p)
{
    void *sums;
    uint64_t known = f->region.complete ? f->region.tiles : f->region.done;
    int r = memory_take(m, "checksums", f->region.tiles * SUM_BYTES, &sums);
    if (!r)
        r = file_pread(f->fd, sums, known * SUM_BYTES, region_sum_offset(0));
    if (r)
        return refuse(f, r, NULL, p);
    f->sums = sums;
    return 0;
}

int region_file_open(struct region_file *f, const struct region_file_options *o,
                     const struct region *wanted, struct memory *m, struct problems *p)
{
    *f = (struct region_file){.fd = -1, .direct = -1};
    int r = open_both(f, o, O_RDWR | O_CREAT, p);
    if (!r)
        r = look(f, wanted, o->overwrite, p);
    if (!r)
        r = make_room(f, p);
    if (!r)
        r = take_sums(f, m, p);
    if (r)
        region_file_close(f);
    return r;
}

int region_file_read(struct region_file *f, const struct region_file_options *o,
                     struct memory *m, struct problems *p)
{
    uint8_t block[REGION_BLOCK];
    const char *why = NULL;
    *f = (struct region_file){.fd = -1, .direct = -1};
    int r = open_both(f, o, O_RDONLY, p);
    if (!r && (r = file_pread(f->fd, block, sizeof block, 0)))
        refuse(f, r, r == -ENODATA ? "too short to be a region" : NULL, p);
    if (!r && (r = region_decode(&f->region, block, &why)))
        refuse(f, r, why, p);
    if (!r && !f->region.complete)
        r = refuse(f, -EINVAL, "its packing was not finished", p);
    if (!r && !f->region.data_offset)
        r = refuse(f, -EINVAL, "it holds the checksums of a checkpoint, no tiles", p);
    if (!r)
        r = take_sums(f, m, p);
    if (r)
        region_file_close(f);
    return r;
}

void region_file_close(struct region_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    if (f->direct >= 0)
        close(f->direct);
    f->fd = f->direct = -1;
}

/* ---- writing --------------------------------------------------------------------------- */

int region_file_put(struct region_file *f, uint64_t rank, const uint8_t *tiles, size_t count,
                    const uint8_t *sums)
{
    memcpy(f->sums + rank * SUM_BYTES, sums, count * SUM_BYTES);
    return write_all(f->direct, tiles, count * f->region.tile_stride,
                     region_tile_offset(&f->region, rank));
}

static int write_head(struct region_file *f)
{
    uint8_t block[REGION_BLOCK];
    region_encode(&f->region, block);
    int r = write_all(f->fd, block, sizeof block, 0);
    return r ? r : fdatasync(f->fd) ? -errno : 0;
}

int region_file_draft(struct region_file *f, uint64_t done)
{
    uint64_t from = f->region.done < done ? f->region.done : 0;
    int r = write_all(f->fd, f->sums + from * SUM_BYTES, (done - from) * SUM_BYTES,
                      region_sum_offset(from));
    if (!r && (fdatasync(f->fd) || fdatasync(f->direct)))
        r = -errno;
    if (r)
        return r;
    f->region.complete = false;
    f->region.done = done;
    return write_head(f);
}

int region_file_complete(struct region_file *f)
{
    f->region.complete = true;
    return write_head(f);
}
