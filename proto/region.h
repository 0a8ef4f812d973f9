/*
 * Packed regions: the file or block device in which `kapok pack` puts tiles of the expert grid
 * and from which an expertd serves them.
 *
 *     0        superblock, 4096 bytes, little-endian, with its own checksum at the end
 *     4096     checksum table: XXH3-128 of every tile, 16 bytes each
 *     data     tiles, each at a multiple of 4096: layer-major, then expert, then band
 *
 * A region holds a product of layers, experts and bands, so that every offset is arithmetic;
 * the bands it holds of one expert are adjacent, so one expert is one read. A tile is
 *
 *     w1 rows of the band | their scales | w3 rows | their scales | w2 columns | their scales
 *
 * where w2 columns are [latent] rows of band / 2 bytes. The same superblock and table without
 * data, in the file REGION_SUMS beside the shards, are the checksums of a checkpoint that is
 * served in place: the sum of a tile is the same wherever it lies.
 *
 * While it is being packed a region carries another magic and how far it is; the superblock
 * proper is written last.
 */
#ifndef PROTO_REGION_H
#define PROTO_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/problems.h"
#include "proto/checkpoint.h"
#include "proto/shape.h"
#include "proto/sum.h"
#include "proto/tile.h"

#define REGION_BLOCK 4096 /* superblock; everything begins at a multiple */
#define REGION_RUNS  64
#define REGION_SUMS  "kapok.sums"
#define REGION_PARTS 6

struct region_runs { /* increasing, half-open, apart */
    uint32_t count;
    uint32_t first[REGION_RUNS], end[REGION_RUNS];
};

struct region {
    uint8_t digest[CHECKPOINT_DIGEST];
    /* Of the shape it was packed for: all that an expert server has to know. */
    uint32_t layers_all, dense_layers, experts_all, chosen;
    uint32_t latent, expert_width, band, bands_all;
    float situ[2];
    struct region_runs layers, experts;
    uint64_t bands;
    bool complete;
    uint64_t done;        /* tiles packed so far, when not complete */
    uint64_t tiles;       /* in all */
    uint64_t tile_bytes;  /* that count */
    uint64_t tile_stride; /* from tile to tile */
    uint64_t data_offset; /* 0: only checksums */
};

/* A tile where it lies: nibbles and scales of MXFP4, docs/numerics.md. In a region all is
 * contiguous; in a shard the columns of w2 are not. */
struct region_tile {
    const uint8_t *w1, *s1; /* [band][latent / 2], [band][latent / 32] */
    const uint8_t *w3, *s3; /* the same */
    const uint8_t *w2, *s2; /* [latent] rows of the band's columns, strides below */
    size_t w2_stride, s2_stride;
};

/* For the tiles of `t`, which must be a product (what tile_set_parse() gives is). `data`: with
 * tiles, not only their sums. -EINVAL with a sentence when it is none. */
int region_init(struct region *r, const struct checkpoint *c, const struct tile_set *t,
                bool data, struct problems *p);

void region_encode(const struct region *r, uint8_t block[REGION_BLOCK]);

/* -EBADMSG with a sentence when these bytes are no superblock, or a damaged one. */
int region_decode(struct region *r, const uint8_t block[REGION_BLOCK], const char **ret_why);

/* Does it belong to this checkpoint? -EPROTO or -EINVAL with a sentence that begins with
 * `path`. Without it nothing else here may be used with that checkpoint's shape. */
int region_check(const struct region *r, const char *path, const struct checkpoint *c,
                 struct problems *p);

/* The fields named above, the rest zero: enough for tiles and for the payload of Compute. */
void region_shape(const struct region *r, struct shape *ret_shape);

void region_tiles(const struct region *r, struct tile_set *ret_tiles);
uint64_t region_bytes(const struct region *r); /* of the whole file */

/* Which tile of the table, counted from 0; it must be held. */
uint64_t region_rank(const struct region *r, uint32_t layer, uint32_t expert, uint32_t band);
/* And back. */
void region_place(const struct region *r, uint64_t rank, uint32_t ret_place[3]);

static inline uint64_t region_sum_offset(uint64_t rank)
{
    return REGION_BLOCK + rank * SUM_BYTES;
}

static inline uint64_t region_tile_offset(const struct region *r, uint64_t rank)
{
    return r->data_offset + rank * r->tile_stride;
}

/* The tile that begins at `bytes`, packed. */
struct region_tile region_view(const struct region *r, const uint8_t *bytes);

/* Copies a tile from where it lies to `out` (tile_bytes). */
void region_gather(const struct region *r, const struct region_tile *t, uint8_t *out);

/* Bytes of scratch region_sum() needs. */
size_t region_scratch(const struct region *r);

/* The tile's checksum, wherever it lies. */
void region_sum(const struct region *r, const struct region_tile *t, uint8_t *scratch,
                uint8_t ret_sum[SUM_BYTES]);

/* Is there a scale byte of 255 (NaN) in it? */
bool region_has_nan(const struct region *r, const struct region_tile *t);

#endif
