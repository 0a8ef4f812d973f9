/*
 * The journal of the background generations: an append-only file of JSON records, each with its
 * length and checksums, made durable before what it says is told to anybody.
 *
 *     u32 magic, u32 length, u64 XXH3 of the eight bytes before   | a head that is whole tells
 *     length bytes of JSON, u64 XXH3 of them                      | how long the record is
 *
 * all little-endian. What a crash left half-written at the end is cut; anything else that is
 * damaged is refused with its offset. One process at a time (a lock on the file). Any thread
 * may append; records are kept in memory until journal_sync().
 */
#ifndef COORDINATOR_JOURNAL_H
#define COORDINATOR_JOURNAL_H

#include <jansson.h>

#include "base/problems.h"

struct journal;

/* Opens or makes the file, and calls `each` with every record (borrowed) in order. */
int journal_open(struct journal **ret_journal, const char *path,
                 void (*each)(void *context, const json_t *record), void *context,
                 struct problems *p);
void journal_close(struct journal *j); /* NULL is fine */

/* Takes the reference. -ENOMEM. */
int journal_append(struct journal *j, json_t *record);

/* Writes and syncs what was appended. After a failure the file is as it was before (or every
 * later call fails too). */
int journal_sync(struct journal *j);

/* Replaces the file's contents by what was appended since; for compaction at start. */
int journal_rewrite(struct journal *j);

#endif
