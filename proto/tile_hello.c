/* Boxes of tiles to and from HelloReply: see the header. */
#include "proto/tile_hello.h"

#include <assert.h>
#include <errno.h>

void tile_hello_write(struct tile_hello *t, const struct tile_set *set, Kapok__HelloReply *h)
{
    assert(set->boxes <= TILE_BOXES);
    for (size_t i = 0; i < set->boxes; i++) {
        const struct tile_box *b = &set->box[i];
        kapok__tile_box__init(&t->box[i]);
        t->box[i].layer_first = b->layer_first;
        t->box[i].layer_end = b->layer_end;
        t->box[i].expert_first = b->expert_first;
        t->box[i].expert_end = b->expert_end;
        t->box[i].bands = b->bands;
        t->list[i] = &t->box[i];
    }
    h->n_tiles = set->boxes;
    h->tiles = t->list;
}

int tile_hello_read(struct tile_set *set, const Kapok__HelloReply *h, const struct shape *s,
                    const char **ret_why)
{
    struct tile_set made = {.boxes = h->n_tiles};
    if (h->n_tiles > TILE_BOXES) {
        *ret_why = "Hello: more boxes of tiles than a peer may have";
        return -EBADMSG;
    }
    for (size_t i = 0; i < h->n_tiles; i++) {
        const Kapok__TileBox *b = h->tiles[i];
        made.box[i] = (struct tile_box){b->layer_first, b->layer_end, b->expert_first,
                                        b->expert_end, b->bands};
    }
    if (tile_set_check(&made, s)) {
        *ret_why = "Hello: a box of tiles is empty or leaves the grid of the model";
        return -EBADMSG;
    }
    *set = made;
    return 0;
}
