/* Nothing ages until it is looked at: an entry knows when its numbers were right. */
#include "expertd/worth.h"

#include <math.h>

#define FAST_HALF   1.0f  /* visits until a use counts half */
#define SLOW_HALF   64.0f /* the same, in the long memory */
#define SLOW_WEIGHT 0.2f

size_t worth_bytes(const struct shape *s)
{
    size_t layers = s->layers - s->dense_layers;
    return layers * (s->experts * sizeof(struct worth_entry) + sizeof(uint32_t));
}

void worth_init(struct worth *w, const struct shape *s, void *zeroed)
{
    w->layer_first = s->dense_layers;
    w->layers = s->layers - s->dense_layers;
    w->experts = s->experts;
    w->entry = zeroed;
    w->visits = (uint32_t *)(w->entry + (size_t)w->layers * w->experts);
}

static struct worth_entry *entry_of(const struct worth *w, uint32_t layer, uint32_t expert)
{
    return &w->entry[(size_t)(layer - w->layer_first) * w->experts + expert];
}

static struct worth_entry aged(const struct worth *w, uint32_t layer, uint32_t expert)
{
    struct worth_entry e = *entry_of(w, layer, expert);
    uint32_t now = w->visits[layer - w->layer_first];
    float age = (float)(now - e.visit);
    e.fast *= exp2f(-age / FAST_HALF);
    e.slow *= exp2f(-age / SLOW_HALF);
    e.visit = now;
    return e;
}

void worth_visit(struct worth *w, uint32_t layer)
{
    w->visits[layer - w->layer_first]++;
}

void worth_use(struct worth *w, uint32_t layer, uint32_t expert)
{
    struct worth_entry e = aged(w, layer, expert);
    e.fast++;
    e.slow++;
    *entry_of(w, layer, expert) = e;
}

float worth_of(const struct worth *w, uint32_t layer, uint32_t expert)
{
    struct worth_entry e = aged(w, layer, expert);
    return e.fast + SLOW_WEIGHT * e.slow;
}
