/*
 * A folder for a test's files, under the folder the test runs in (the build tree): /tmp is
 * often a file system without O_DIRECT.
 */
#ifndef TESTS_BASE_SCRATCH_H
#define TESTS_BASE_SCRATCH_H

#include <stddef.h>

#define SCRATCH_PATH 256

struct scratch {
    char folder[SCRATCH_PATH];
};

void scratch_open(struct scratch *s);
void scratch_close(struct scratch *s); /* removes it with all that is in it */

/* folder/name; good until the next call. */
const char *scratch_path(struct scratch *s, const char *name);

/* Writes a file of the folder. */
void scratch_write(struct scratch *s, const char *name, const void *bytes, size_t length);

/* What `run(context)` writes to `fd` (1 or 2), in a child process, and its exit code. */
int scratch_child(void (*run)(void *context), void *context, int fd, char *text, size_t size);

#endif
