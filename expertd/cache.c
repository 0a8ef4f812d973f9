/*
 * Entries are found by a table over the whole grid (8 bytes an expert): no hashing, nothing to
 * grow. Entries of one expert with different bands are chained; there is nearly always one.
 * Worths change with every visit, so the least one of a layer is looked for when it is needed:
 * a layer holds some dozens.
 */
#include "expertd/cache.h"

#include <assert.h>

#define PASSING_MOST 32 /* slots kept for what is under way, */
#define PASSING_PART 4  /* but at most this part of them */

static uint32_t layers(const struct shape *s)
{
    return s->layers - s->dense_layers;
}

static size_t grid(const struct shape *s)
{
    return (size_t)layers(s) * s->experts;
}

static struct cache_entry **head_of(struct cache *c, uint32_t layer, uint32_t expert)
{
    return &c->found[(size_t)(layer - c->shape->dense_layers) * c->shape->experts + expert];
}

static struct cache_list *list_of(struct cache *c, uint32_t layer)
{
    return &c->layer[layer - c->shape->dense_layers];
}

static void list_add(struct cache_list *l, struct cache_entry *e)
{
    e->before = NULL;
    e->behind = l->first;
    if (l->first)
        l->first->before = e;
    l->first = e;
    l->count++;
    l->stale = true;
}

static void list_remove(struct cache_list *l, struct cache_entry *e)
{
    *(e->before ? &e->before->behind : &l->first) = e->behind;
    if (e->behind)
        e->behind->before = e->before;
    l->count--;
    l->stale = true;
}

size_t cache_table_bytes(const struct shape *s, size_t slots)
{
    return slots * sizeof(struct cache_entry) + grid(s) * sizeof(struct cache_entry *) +
           layers(s) * sizeof(struct cache_list) + worth_bytes(s);
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
    c->passing = slots / PASSING_PART < PASSING_MOST ? slots / PASSING_PART : PASSING_MOST;
    c->found = table;
    c->layer = (struct cache_list *)(c->found + grid(s));
    c->entry = (struct cache_entry *)(c->layer + layers(s));
    worth_init(&c->worth, s, c->entry + slots);
    for (size_t i = slots; i-- > 0;) {
        c->entry[i].bytes = (uint8_t *)bytes + i * slot_bytes;
        list_add(&c->idle, &c->entry[i]);
    }
    return 0;
}

void cache_visit(struct cache *c, uint32_t layer)
{
    worth_visit(&c->worth, layer);
    list_of(c, layer)->stale = true;
}

void cache_use(struct cache *c, uint32_t layer, uint32_t expert)
{
    worth_use(&c->worth, layer, expert);
    list_of(c, layer)->stale = true;
}

struct cache_entry *cache_find(struct cache *c, uint32_t layer, uint32_t expert, uint64_t bands)
{
    struct cache_entry *e = *head_of(c, layer, expert);
    while (e && bands & ~e->bands)
        e = e->chain;
    return e;
}

/* ---- whose slot ------------------------------------------------------------------------ */

/* Slots a layer may keep when all are wanted. */
static size_t share(const struct cache *c, uint32_t index)
{
    size_t kept = c->slots - c->passing, n = layers(c->shape);
    return kept * (index + 1) / n - kept * index / n;
}

/* What a layer would give up: the least worth of what nobody pins. */
static struct cache_entry *least(const struct cache *c, struct cache_list *l)
{
    if (!l->stale)
        return l->least;
    l->least = NULL;
    l->stale = false;
    for (struct cache_entry *e = l->first; e; e = e->behind) {
        float w = e->pins ? 0 : worth_of(&c->worth, e->layer, e->expert);
        if (!e->pins && (!l->least || w < l->least_worth)) {
            l->least = e;
            l->least_worth = w;
        }
    }
    return l->least;
}

/* The least worth of all layers beyond their share; of equals, that of the layer farthest
 * beyond. Those within their share give only when no other can. */
static struct cache_entry *victim(struct cache *c)
{
    struct cache_entry *found = NULL;
    float found_worth = 0;
    long found_beyond = 0;
    for (uint32_t i = 0; i < layers(c->shape); i++) {
        long beyond = (long)c->layer[i].count - (long)share(c, i);
        struct cache_entry *e = least(c, &c->layer[i]);
        float worth = c->layer[i].least_worth;
        if (!e || (found && beyond <= 0 && found_beyond > 0))
            continue;
        bool better = !found || (beyond > 0 && found_beyond <= 0) || worth < found_worth ||
                      (worth == found_worth && beyond > found_beyond);
        if (!better)
            continue;
        found = e;
        found_worth = worth;
        found_beyond = beyond;
    }
    return found;
}

/* ---- entries --------------------------------------------------------------------------- */

/* Out of the table. Who has it pinned still computes from it: what it holds stays said. */
static void forget(struct cache *c, struct cache_entry *e)
{
    struct cache_entry **at = head_of(c, e->layer, e->expert);
    while (*at != e)
        at = &(*at)->chain;
    *at = e->chain;
    list_remove(list_of(c, e->layer), e);
    e->state = CACHE_FREE;
}

struct cache_entry *cache_take(struct cache *c, uint32_t layer, uint32_t expert, uint64_t bands)
{
    struct cache_entry *e = c->idle.first;
    if (e) {
        list_remove(&c->idle, e);
    } else {
        e = victim(c);
        if (!e)
            return NULL;
        forget(c, e);
    }
    struct cache_entry **head = head_of(c, layer, expert);
    e->layer = layer;
    e->expert = expert;
    e->bands = bands;
    e->state = CACHE_READING;
    e->pins = 1;
    e->chain = *head;
    *head = e;
    list_add(list_of(c, layer), e);
    return e;
}

void cache_pin(struct cache *c, struct cache_entry *e)
{
    e->pins++;
    list_of(c, e->layer)->stale = true;
}

void cache_unpin(struct cache *c, struct cache_entry *e)
{
    assert(e->pins);
    e->pins--;
    list_of(c, e->layer)->stale = true;
    if (!e->pins && e->state == CACHE_FREE)
        list_add(&c->idle, e);
}

void cache_drop(struct cache *c, struct cache_entry *e)
{
    forget(c, e);
    if (!e->pins)
        list_add(&c->idle, e);
}
