/*
 * A drive: one source of experts, the cache in front of it, and the one thread that owns both.
 *
 * The thread takes wants and hints from a mailbox, submits reads and reaps them, and gives
 * wants whose bytes are there to the crew. It never waits for one read before it starts
 * another. Requests that want the same expert share its read. Read-ahead starts only while no
 * demand is waiting or being read, and never displaces what somebody waits for. A want whose
 * read fails fails its request, with the layer, the expert and the file; what was read for it
 * is forgotten.
 */
#ifndef EXPERTD_DRIVE_H
#define EXPERTD_DRIVE_H

#include <stdatomic.h>

#include "base/disk.h"
#include "base/thread.h"
#include "expertd/cache.h"
#include "expertd/crew.h"
#include "expertd/job.h"
#include "expertd/source.h"

#define DRIVE_DEPTH 64 /* reads in the kernel at most */
#define DRIVE_HINTS 16 /* hints under way; more are dropped, they are only hints */

struct drive_read {
    struct disk_read disk; /* first member; its owner is the entry */
    uint32_t file;
    struct drive_read *next;
};

struct drive_hint {
    struct note note;
    uint32_t layer;
    size_t count;
    uint16_t *expert; /* [experts] */
};

struct drive {
    struct source *source;
    struct crew *crew;
    struct job_pool *pool;
    struct tally *tally;
    struct thread thread;
    struct queue mail;  /* of struct note * */
    struct queue hints; /* idle ones */
    struct drive_hint hint[DRIVE_HINTS];
    struct note stop;
    /* The thread's: */
    struct disk *disk;
    struct cache cache;
    struct drive_read *read, *idle; /* all of them; idle ones by `next` */
    size_t reads_idle;
    size_t bytes_wanted, bytes_flying; /* to be under way (trial.h); that are */
    struct want *first, *last;         /* demands without an entry */
    unsigned demand;                   /* entries being read that somebody waits for */
    struct drive_ahead {               /* a ring of experts to read ahead */
        uint32_t layer, expert;
    } * ahead;
    size_t ahead_head, ahead_count, ahead_room;
    bool stopping;
};

size_t drive_slot_bytes(const struct source *s);

/* Bytes beside the slots. */
uint64_t drive_bytes(const struct source *s, size_t slots);

/* `wants`: how many may be in the mailbox at once. */
int drive_open(struct drive *d, struct source *s, struct crew *crew, size_t slots, size_t wants,
               struct memory *m);
void drive_close(struct drive *d);

int drive_start(struct drive *d);
void drive_stop(struct drive *d); /* once nothing is under way any more */

/* Any thread: a want to be served; a want that was served; one of which some bands were not
 * what was packed, to be read once more; experts soon to be wanted. */
void drive_want(struct drive *d, struct want *w);
void drive_done(struct drive *d, struct want *w);
void drive_bad(struct drive *d, struct want *w);
void drive_hint(struct drive *d, uint32_t layer, const uint32_t *expert, size_t count);

/* The tile of {layer, expert, band} in a pinned entry. Any thread. */
struct region_tile drive_tile(const struct drive *d, const struct cache_entry *e,
                              const uint32_t place[3]);

/* Is it what was packed? Checked once for every tile that was read. Any thread. */
bool drive_sound(const struct drive *d, struct cache_entry *e, const uint32_t place[3],
                 const struct region_tile *t, uint8_t *scratch);

#endif
