/* Packing: tiles of a checkpoint into a region, from where an interrupted run stopped. */
#ifndef CLIENT_PACK_H
#define CLIENT_PACK_H

#include "base/problems.h"
#include "client/region_file.h"
#include "proto/checkpoint.h"
#include "proto/tile.h"

/* Packs, reads everything back, and completes the region. -ECANCELED when SIGINT or SIGTERM is
 * pending: the same call goes on later. Others with sentences. */
int pack(const struct checkpoint *c, const struct tile_set *tiles,
         const struct region_file_options *o, struct problems *p);

#endif
