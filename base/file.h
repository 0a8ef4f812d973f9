/* Small files, whole: read with a bound, written so that a reader never sees half of one. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Reads a whole regular file of at most `most` bytes; *ret_bytes is malloc'ed, with a zero
 * byte after its end. -EFBIG when larger, -EINVAL when not a regular file. */
int file_read(const char *path, size_t most, char **ret_bytes, size_t *ret_length);

/* Temporary name, write, fsync, rename, fsync of the folder; mode as given. */
int file_write(const char *path, const void *bytes, size_t length, unsigned mode);

/* pread until `length` bytes or end of file; EINTR is hidden. -ENODATA when the file ends
 * early. */
int file_pread(int fd, void *bytes, size_t length, uint64_t offset);

#endif
