/*
 * The slots of memory that experts are read into, and what they hold.
 *
 * An entry is one slot: some bands of one expert, being read or ready. A demand pins the entry
 * until its tiles are computed; what nobody pins stays until its slot is wanted.
 *
 * Whose slot is taken? A token sweeps through all layers, so the least recently used expert is
 * the one that will be wanted soonest: with less memory than a sweep needs, that rule never
 * hits. Here every layer has its share of the slots, some slots are left for what is under way,
 * and a layer beyond its share gives up what is worth least (worth.h). So a new expert stays
 * only if it is worth more than what its layer holds, and no sweep can empty the cache.
 *
 * Belongs to one thread; only the bytes of pinned entries are looked at by others.
 */
#ifndef EXPERTD_CACHE_H
#define EXPERTD_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "expertd/worth.h"
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
    struct cache_entry *chain;           /* others of the same expert */
    struct cache_entry *before, *behind; /* in the list of its layer, or of free slots */
};

struct cache_list {
    struct cache_entry *first;
    size_t count;
    /* Of a layer: what it would give up, looked for again when `stale`. */
    struct cache_entry *least;
    float least_worth;
    bool stale;
};

struct cache {
    const struct shape *shape;
    size_t slots, slot_bytes;
    struct cache_entry *entry;  /* [slots] */
    struct cache_entry **found; /* [layer - dense_layers][expert] */
    struct cache_list *layer;   /* [layers - dense_layers] entries that hold something */
    struct cache_list idle;     /* free slots */
    struct worth worth;
    size_t passing; /* slots beyond the layers' shares */
};

/* What cache_open() takes beside the slots themselves. */
size_t cache_table_bytes(const struct shape *s, size_t slots);

/* `slot_bytes`: a multiple of DISK_PAGE. -ENOMEM. Slots are not touched before use. */
int cache_open(struct cache *c, const struct shape *s, size_t slots, size_t slot_bytes,
               struct memory *m);

/* A request begins that wants experts of this layer; it wants this one. */
void cache_visit(struct cache *c, uint32_t layer);
void cache_use(struct cache *c, uint32_t layer, uint32_t expert);

/* An entry that holds, or will hold, at least these bands; NULL. */
struct cache_entry *cache_find(struct cache *c, uint32_t layer, uint32_t expert,
                               uint64_t bands);

/* A slot for these bands, in state CACHE_READING and pinned once; another expert that nobody
 * pins makes room. NULL when all are pinned. */
struct cache_entry *cache_take(struct cache *c, uint32_t layer, uint32_t expert,
                               uint64_t bands);

void cache_pin(struct cache *c, struct cache_entry *e);
void cache_unpin(struct cache *c, struct cache_entry *e);

/* Forgets what an entry holds; its last unpin frees the slot. */
void cache_drop(struct cache *c, struct cache_entry *e);

#endif
