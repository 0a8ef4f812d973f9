/*
 * Tile sets as they travel in an expertd's answer to Hello: written by the expertd, read by the
 * trunk through one bounded reader.
 */
#ifndef PROTO_TILE_HELLO_H
#define PROTO_TILE_HELLO_H

#include "proto/msg.h"
#include "proto/shape.h"
#include "proto/tile.h"

/* The memory a HelloReply's boxes lie in; must live as long as the reply is used. */
struct tile_hello {
    Kapok__TileBox box[TILE_BOXES];
    Kapok__TileBox *list[TILE_BOXES];
};

/* Lets h->tiles point into `t`, with the boxes of `set`. */
void tile_hello_write(struct tile_hello *t, const struct tile_set *set, Kapok__HelloReply *h);

/* The set a peer says it holds; empty when it names no tiles. -EBADMSG with a sentence (static
 * text) when there are more than TILE_BOXES boxes or one is empty or leaves the grid. */
int tile_hello_read(struct tile_set *set, const Kapok__HelloReply *h, const struct shape *s,
                    const char **ret_why);

#endif
