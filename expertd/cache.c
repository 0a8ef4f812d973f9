/*
 * Entries are found by a table over the whole grid (8 bytes an expert): no hashing, nothing to
 * grow. Entries of one expert with different bands are chained; there is nearly always one.
 */
#include "expertd/cache.h"

#include <assert.h>

static struct cache_entry **head_of(struct cache *c, uint32_t layer, uint32_t expert)
{
    return &c->first[(size_t)(layer - c->shape->dense_layers) * c->shape->experts + expert];
}

static size_t grid(const struct shape *s)
{
    return (size_t)(s->layers - s->dense_layers) * s->experts;
}

size_t cache_table_bytes(const struct shape *s, size_t slots)
{
    return slots * sizeof(struct cache_entry) + grid(s) * sizeof(struct cache_entry *);
}

static void unlink_use(struct cache *c, struct cache_entry *e)
{
    *(e->older ? &e->older->newer : &c->oldest) = e->newer;
    *(e->newer ? &e->newer->older : &c->newest) = e->older;
}

static void link_newest(struct cache *c, struct cache_entry *e)
{
    e->older = c->newest;
    e->newer = NULL;
    *(c->newest ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
}

static void link_oldest(struct cache *c, struct cache_entry *e)
{
    e->newer = c->oldest;
    e->older = NULL;
    *(c->oldest ? &c->oldest->older : &c->newest) = e;
    c->oldest = e;
}

int cache_open(struct cache *c, const struct shape *s, size_t slots, size_t slot_bytes,
               struct memory *m)
{
    void *bytes, *table;
    *c = (struct cache){.shape = s, .slots = slots, .slot_bytes = slot_bytes};
    int r = memory_take(m, "cache table", cache_table_bytes(s, slots), &table);
    if (!r)
        r = memory_take(m, "expert slots", slots * slot_bytes, &bytes);
    if (r)
        return r;
    c->first = table;
    c->entry = (struct cache_entry *)(c->first + grid(s));
    for (size_t i = 0; i < slots; i++) {
        c->entry[i].bytes = (uint8_t *)bytes + i * slot_bytes;
        link_newest(c, &c->entry[i]);
    }
    return 0;
}

struct cache_entry *cache_find(struct cache *c, uint32_t layer, uint32_t expert, uint64_t bands)
{
    struct cache_entry *e = *head_of(c, layer, expert);
    while (e && bands & ~e->bands)
        e = e->chain;
    return e;
}

static void forget(struct cache *c, struct cache_entry *e)
{
    struct cache_entry **at = head_of(c, e->layer, e->expert);
    while (*at != e)
        at = &(*at)->chain;
    *at = e->chain;
    e->bands = 0;
    e->state = CACHE_FREE;
}

struct cache_entry *cache_take(struct cache *c, uint32_t layer, uint32_t expert, uint64_t bands)
{
    struct cache_entry *e = c->oldest;
    while (e && e->pins)
        e = e->newer;
    if (!e)
        return NULL;
    if (e->state != CACHE_FREE)
        forget(c, e);
    struct cache_entry **head = head_of(c, layer, expert);
    e->layer = layer;
    e->expert = expert;
    e->bands = bands;
    e->state = CACHE_READING;
    e->chain = *head;
    *head = e;
    cache_pin(c, e);
    return e;
}

void cache_pin(struct cache *c, struct cache_entry *e)
{
    e->pins++;
    unlink_use(c, e);
    link_newest(c, e);
}

void cache_unpin(struct cache *c, struct cache_entry *e)
{
    assert(e->pins);
    e->pins--;
    if (!e->pins && e->state == CACHE_FREE) {
        unlink_use(c, e);
        link_oldest(c, e);
    }
}

void cache_drop(struct cache *c, struct cache_entry *e)
{
    forget(c, e);
    if (!e->pins) {
        unlink_use(c, e);
        link_oldest(c, e);
    }
}
