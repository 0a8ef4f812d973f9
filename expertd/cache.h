/*
 * The slots of memory that experts are read into, and what they hold.
 *
 * An entry is one slot: some bands of one expert, being read or ready. A demand pins the entry
 * until its tiles are computed; what nobody pins stays until its slot is wanted. Belongs to one
 * thread; only the bytes of pinned entries are looked at by others.
 */
#ifndef EXPERTD_CACHE_H
#define EXPERTD_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "proto/shape.h"

enum cache_state { CACHE_FREE, CACHE_READING, CACHE_READY };

struct want;

struct cache_entry {
    uint32_t layer, expert;
    uint64_t bands; /* what it holds, or will */
    uint8_t *bytes; /* the slot */
    enum cache_state state;
    unsigned pins;
    /* The drive's: */
    struct want *waiting;     /* demands that came before the bytes */
    unsigned reads_left;      /* under way */
    _Atomic uint64_t checked; /* bands whose checksum was right; the crew's, while pinned */
    int error;                /* of a read */
    uint32_t error_file;      /* whose */
    uint64_t unclaimed;       /* bytes read for no demand yet, or not counted to one yet */
    bool ahead;               /* read because of a hint, not wanted yet */
    /* private */
    struct cache_entry *chain;         /* others of the same expert */
    struct cache_entry *older, *newer; /* by last use */
};

struct cache {
    const struct shape *shape;
    size_t slots, slot_bytes;
    struct cache_entry *entry;  /* [slots] */
    struct cache_entry **first; /* [layer - dense_layers][expert] */
    struct cache_entry *oldest, *newest;
};

/* What cache_open() takes beside the slots themselves. */
size_t cache_table_bytes(const struct shape *s, size_t slots);

/* `slot_bytes`: a multiple of DISK_PAGE. -ENOMEM. Nothing is touched before use. */
int cache_open(struct cache *c, const struct shape *s, size_t slots, size_t slot_bytes,
               struct memory *m);

/* An entry that holds, or will hold, at least these bands; NULL. */
struct cache_entry *cache_find(struct cache *c, uint32_t layer, uint32_t expert,
                               uint64_t bands);

/* A slot for these bands, in state CACHE_READING and pinned once; another expert that nobody
 * pins makes room. NULL when all are pinned. */
struct cache_entry *cache_take(struct cache *c, uint32_t layer, uint32_t expert,
                               uint64_t bands);

void cache_pin(struct cache *c, struct cache_entry *e); /* also counts as a use */
void cache_unpin(struct cache *c, struct cache_entry *e);

/* Forgets what an entry holds; its last unpin frees the slot. */
void cache_drop(struct cache *c, struct cache_entry *e);

#endif
