/*
 * Small files. Reading does not trust the size that stat gives: files of /proc and /sys claim
 * none, and a file may grow meanwhile; the bound holds in every case. Writing goes to a
 * temporary name in the same folder, because rename is atomic only within a file system.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_some(int fd, char *bytes, size_t length, size_t *ret_got)
{
    ssize_t n;

    do
        n = read(fd, bytes, length);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    *ret_got = (size_t)n;
    return 0;
}

/* Reads to the end into `*bytes`, which grows up to most + 2 bytes (one to notice that the file
 * is too large, one for the zero). */
static int read_to_end(int fd, size_t most, char **bytes, size_t room, size_t *ret_length)
{
    size_t length = 0, got = 0;

    for (;;) {
        int error = read_some(fd, *bytes + length, room - 1 - length, &got);
        if (error)
            return error;
        if (got == 0)
            break;
        length += got;
        if (length > most)
            return -EFBIG;
        if (length == room - 1) {
            size_t larger = room > most / 2 ? most + 2 : 2 * room;
            char *moved = realloc(*bytes, larger);
            if (!moved)
                return -ENOMEM;
            *bytes = moved;
            room = larger;
        }
    }
    (*bytes)[length] = '\0';
    *ret_length = length;
    return 0;
}

int file_read(const char *path, size_t most, char **ret_bytes, size_t *ret_length)
{
    struct stat st;
    char *bytes = NULL;
    int error;

    if (most > SIZE_MAX / 4)
        return -EINVAL;
    /* Without O_NONBLOCK, opening a FIFO that nobody writes would never come back. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0) {
        error = -errno;
        goto fail;
    }
    error = -EINVAL;
    if (!S_ISREG(st.st_mode))
        goto fail;
    error = -EFBIG;
    if ((uint64_t)st.st_size > most)
        goto fail;

    size_t room = (size_t)st.st_size + 2;
    error = -ENOMEM;
    bytes = malloc(room);
    if (!bytes)
        goto fail;
    error = read_to_end(fd, most, &bytes, room, ret_length);
    if (error)
        goto fail;
    close(fd);
    *ret_bytes = bytes;
    return 0;
fail:
    free(bytes);
    close(fd);
    return error;
}

static int write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, bytes, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        bytes += n;
        length -= (size_t)n;
    }
    return 0;
}

/* A rename is on the disk only once its folder is. */
static int sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = NULL;
    int error = 0;

    if (slash) {
        folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
        if (!folder)
            return -ENOMEM;
    }
    int fd = open(folder ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        error = -errno;
    if (fd >= 0)
        close(fd);
    free(folder);
    return error;
}

static int write_temporary(int fd, const void *bytes, size_t length, unsigned mode)
{
    int error = 0;

    if (fchmod(fd, mode) < 0)
        error = -errno;
    if (!error)
        error = write_all(fd, bytes, length);
    if (!error && fsync(fd) < 0)
        error = -errno;
    if (close(fd) < 0 && !error)
        error = -errno;
    return error;
}

int file_write(const char *path, const void *bytes, size_t length, unsigned mode)
{
    char *temporary;
    int error;

    if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
        return -ENOMEM;
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        error = -errno;
        free(temporary);
        return error;
    }
    error = write_temporary(fd, bytes, length, mode);
    if (!error && rename(temporary, path) < 0)
        error = -errno;
    if (error)
        unlink(temporary);
    free(temporary);
    return error ? error : sync_folder(path);
}

int file_pread(int fd, void *bytes, size_t length, uint64_t offset)
{
    char *to = bytes;

    while (length > 0) {
        ssize_t n = pread(fd, to, length, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return -ENODATA;
        to += n;
        offset += (uint64_t)n;
        length -= (size_t)n;
    }
    return 0;
}
