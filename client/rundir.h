/*
 * The run directory of a pipeline on this machine: who holds it, the secret, logs, pid files
 * and the url under which it answers. By default /run/kapok for root and /tmp/kapok-UID for
 * others.
 */
#ifndef CLIENT_RUNDIR_H
#define CLIENT_RUNDIR_H

#include <stddef.h>

#include "base/problems.h"

#define RUNDIR_PATH 512

struct rundir {
    char path[RUNDIR_PATH];
    int lock; /* held while a pipeline runs */
};

/* `path` NULL: the default. */
void rundir_name(struct rundir *d, const char *path);

/* Makes it (mode 0700), refuses one that is not ours alone, takes its lock. -EBUSY when another
 * pipeline runs there. */
int rundir_open(struct rundir *d, struct problems *p);
void rundir_close(
    struct rundir *d); /* removes the url and gives the lock back, if it is held */

/* PATH/NAME into buf of RUNDIR_PATH + 64 bytes. */
const char *rundir_file(const struct rundir *d, const char *name, char *buf);

int rundir_write(const struct rundir *d, const char *name, const char *text);
void rundir_remove(const struct rundir *d, const char *name);

/* The url file's line; -ENOENT when nothing runs there. */
int rundir_url(const struct rundir *d, char *buf, size_t size);

#endif
