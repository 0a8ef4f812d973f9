/*
 * The counts of use (worth.h) kept across restarts, one table for each drive in order. They
 * change what is kept in memory, never a result, so a file that does not fit is no error of the
 * server's: it begins without counts and says so.
 */
#ifndef EXPERTD_COUNTS_FILE_H
#define EXPERTD_COUNTS_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "expertd/worth.h"
#include "proto/checkpoint.h"

/* Before the drives start. -ENOENT: there is none yet; -EBADMSG: damaged, or of another model
 * or number of drives; then nothing was changed. */
int counts_file_load(const char *path, const uint8_t digest[CHECKPOINT_DIGEST],
                     struct worth *const *worth, size_t tables);

/* After they stopped. Written anew and renamed. */
int counts_file_save(const char *path, const uint8_t digest[CHECKPOINT_DIGEST],
                     struct worth *const *worth, size_t tables);

#endif
