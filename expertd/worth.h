/*
 * How much an expert is worth keeping: how often it was wanted, with ageing.
 *
 * Time is counted for each layer in visits (requests that wanted any of its experts), because a
 * token touches every layer once: what matters for the next visit is who was wanted in the last
 * ones of the same layer. A worth is the sum over uses of 2^-age, age in visits (consecutive
 * tokens share a third of their experts), and a little of the same with a long memory, which
 * decides between experts that were used equally lately. Belongs to one thread.
 */
#ifndef EXPERTD_WORTH_H
#define EXPERTD_WORTH_H

#include <stddef.h>
#include <stdint.h>

#include "proto/shape.h"

struct worth_entry {
    float fast, slow; /* as of `visit` */
    uint32_t visit;   /* of the last use */
};

struct worth {
    uint32_t layer_first, layers, experts;
    uint32_t *visits;          /* [layers] */
    struct worth_entry *entry; /* [layers][experts] */
};

/* Of a shape's layers with experts. */
size_t worth_bytes(const struct shape *s);
void worth_init(struct worth *w, const struct shape *s, void *zeroed);

void worth_visit(struct worth *w, uint32_t layer);
void worth_use(struct worth *w, uint32_t layer, uint32_t expert);

/* Comparable between all experts of all layers. 0: never used. */
float worth_of(const struct worth *w, uint32_t layer, uint32_t expert);

#endif
