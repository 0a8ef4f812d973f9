/*
 * How many bytes must be under way to keep this disk busy? Measured when a drive starts, before
 * its first request, with reads of a megabyte, which is about what the kernel makes of larger
 * ones. Ends early when there is something to do.
 */
#ifndef EXPERTD_TRIAL_H
#define EXPERTD_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/disk.h"
#include "expertd/source.h"

#define TRIAL_READ  ((size_t)1 << 20)
#define TRIAL_MOST  32                        /* reads under way at most */
#define TRIAL_ROOM  (TRIAL_MOST * TRIAL_READ) /* bytes of memory it needs */
#define TRIAL_UNDER ((size_t)32 << 20)        /* under way when nothing was measured */

struct trial {
    struct disk *disk;
    const struct source *source;
    uint8_t *room;                 /* TRIAL_ROOM bytes, page-aligned */
    bool (*wanted)(void *context); /* true: stop now */
    void *context;
};

/* Bytes to keep under way; TRIAL_UNDER when it was stopped, or when the source is too small to
 * say anything. */
size_t trial(const struct trial *t);

#endif
