/*
 * The superblock is written and read field by field through a cursor, never as a struct: its
 * layout is this file's order of calls. Numbers from outside are checked before any is used.
 */
#include "proto/region.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define MAGIC_DONE  0x4e474552504f4b01ull
#define MAGIC_DRAFT 0x54464152504f4b01ull
#define VERSION     1u
#define GROUP       32

/* ---- sizes ----------------------------------------------------------------------------- */

static size_t rise_bytes(const struct region *r)
{
    return (size_t)r->band * r->latent / 2;
}

static size_t rise_scales(const struct region *r)
{
    return (size_t)r->band * r->latent / GROUP;
}

static uint64_t up_to_block(uint64_t n)
{
    return (n + REGION_BLOCK - 1) / REGION_BLOCK * REGION_BLOCK;
}

static uint64_t held(const struct region_runs *u)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < u->count; i++)
        n += u->end[i] - u->first[i];
    return n;
}

static uint32_t bands_held(const struct region *r)
{
    return (uint32_t)__builtin_popcountll(r->bands);
}

/* Everything that follows from shape and tiles. */
static void derive(struct region *r, bool data)
{
    r->tiles = held(&r->layers) * held(&r->experts) * bands_held(r);
    r->tile_bytes = 3 * (rise_bytes(r) + rise_scales(r));
    r->tile_stride = up_to_block(r->tile_bytes);
    r->data_offset = data ? up_to_block(region_sum_offset(r->tiles)) : 0;
}

uint64_t region_bytes(const struct region *r)
{
    return r->data_offset ? region_tile_offset(r, r->tiles) : region_sum_offset(r->tiles);
}

/* ---- which tiles ----------------------------------------------------------------------- */

static void add_run(struct region_runs *u, uint32_t first, uint32_t end)
{
    for (uint32_t i = 0; i < u->count; i++)
        if (u->first[i] == first && u->end[i] == end)
            return;
    u->first[u->count] = first;
    u->end[u->count++] = end;
}

static bool runs_sound(const struct region_runs *u, uint32_t most)
{
    if (!u->count || u->count > REGION_RUNS)
        return false;
    for (uint32_t i = 0; i < u->count; i++)
        if (u->first[i] >= u->end[i] || u->end[i] > most || (i && u->first[i] < u->end[i - 1]))
            return false;
    return true;
}

int region_init(struct region *r, const struct checkpoint *c, const struct tile_set *t,
                bool data, struct problems *p)
{
    const struct shape *s = &c->shape;
    *r = (struct region){.layers_all = s->layers,
                         .dense_layers = s->dense_layers,
                         .experts_all = s->experts,
                         .chosen = s->chosen,
                         .latent = s->latent,
                         .expert_width = s->expert_width,
                         .band = s->band,
                         .bands_all = s->bands,
                         .situ = {s->situ[0], s->situ[1]},
                         .bands = t->box[0].bands};
    memcpy(r->digest, c->digest, sizeof r->digest);
    for (size_t i = 0; i < t->boxes; i++) {
        add_run(&r->layers, t->box[i].layer_first, t->box[i].layer_end);
        add_run(&r->experts, t->box[i].expert_first, t->box[i].expert_end);
    }
    derive(r, data);
    if (r->tiles == tile_set_count(t, s) && runs_sound(&r->layers, s->layers) &&
        runs_sound(&r->experts, s->experts))
        return 0;
    problems_add(p, "a region holds a product of layers, experts and bands");
    return -EINVAL;
}

void region_shape(const struct region *r, struct shape *ret_shape)
{
    *ret_shape = (struct shape){.layers = r->layers_all,
                                .dense_layers = r->dense_layers,
                                .experts = r->experts_all,
                                .chosen = r->chosen,
                                .latent = r->latent,
                                .expert_width = r->expert_width,
                                .band = r->band,
                                .bands = r->bands_all,
                                .situ = {r->situ[0], r->situ[1]}};
}

void region_tiles(const struct region *r, struct tile_set *ret_tiles)
{
    ret_tiles->boxes = 0;
    for (uint32_t l = 0; l < r->layers.count; l++)
        for (uint32_t e = 0; e < r->experts.count; e++)
            ret_tiles->box[ret_tiles->boxes++] =
                (struct tile_box){r->layers.first[l], r->layers.end[l], r->experts.first[e],
                                  r->experts.end[e], r->bands};
}

static uint64_t rank_in(const struct region_runs *u, uint32_t n)
{
    uint64_t before = 0;
    for (uint32_t i = 0; i < u->count; i++) {
        if (n >= u->first[i] && n < u->end[i])
            return before + n - u->first[i];
        before += u->end[i] - u->first[i];
    }
    assert(!"a tile that the region does not hold");
    return 0;
}

static uint32_t number_at(const struct region_runs *u, uint64_t rank)
{
    uint32_t i = 0;
    for (; rank >= u->end[i] - u->first[i]; i++)
        rank -= u->end[i] - u->first[i];
    return u->first[i] + (uint32_t)rank;
}

uint64_t region_rank(const struct region *r, uint32_t layer, uint32_t expert, uint32_t band)
{
    uint64_t below = r->bands & (((uint64_t)1 << band) - 1);
    assert(r->bands >> band & 1);
    return (rank_in(&r->layers, layer) * held(&r->experts) + rank_in(&r->experts, expert)) *
               bands_held(r) +
           (uint64_t)__builtin_popcountll(below);
}

void region_place(const struct region *r, uint64_t rank, uint32_t ret_place[3])
{
    uint64_t experts = held(&r->experts), left = r->bands;
    for (uint64_t skip = rank % bands_held(r); skip; skip--)
        left &= left - 1;
    rank /= bands_held(r);
    ret_place[0] = number_at(&r->layers, rank / experts);
    ret_place[1] = number_at(&r->experts, rank % experts);
    ret_place[2] = (uint32_t)__builtin_ctzll(left);
}

/* ---- the superblock -------------------------------------------------------------------- */

struct cursor {
    uint8_t *write; /* one of the two */
    const uint8_t *read;
};

/* Writes *n, or reads it. */
static void number(struct cursor *c, uint64_t *n, size_t bytes)
{
    uint64_t got = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (c->write)
            *c->write++ = (uint8_t)(*n >> 8 * i);
        else
            got |= (uint64_t)*c->read++ << 8 * i;
    }
    if (c->read)
        *n = got;
}

static void number32(struct cursor *c, uint32_t *n)
{
    uint64_t wide = *n;
    number(c, &wide, 4);
    *n = (uint32_t)wide;
}

static void real(struct cursor *c, float *x)
{
    uint32_t bits;
    memcpy(&bits, x, sizeof bits);
    number32(c, &bits);
    memcpy(x, &bits, sizeof bits);
}

static void runs(struct cursor *c, struct region_runs *u)
{
    number32(c, &u->count);
    for (size_t i = 0; i < REGION_RUNS; i++) {
        number32(c, &u->first[i]);
        number32(c, &u->end[i]);
    }
}

/* All fields in their order; `data` 1 when tiles follow the table. */
static void fields(struct cursor *c, struct region *r, uint64_t *magic, uint32_t *version,
                   uint32_t *data)
{
    number(c, magic, 8);
    number32(c, version);
    number32(c, data);
    for (size_t i = 0; i < sizeof r->digest; i++) {
        uint64_t byte = r->digest[i];
        number(c, &byte, 1);
        r->digest[i] = (uint8_t)byte;
    }
    number32(c, &r->layers_all);
    number32(c, &r->dense_layers);
    number32(c, &r->experts_all);
    number32(c, &r->chosen);
    number32(c, &r->latent);
    number32(c, &r->expert_width);
    number32(c, &r->band);
    number32(c, &r->bands_all);
    real(c, &r->situ[0]);
    real(c, &r->situ[1]);
    number(c, &r->bands, 8);
    number(c, &r->done, 8);
    number(c, &r->tile_bytes, 8);
    number(c, &r->data_offset, 8);
    runs(c, &r->layers);
    runs(c, &r->experts);
}

void region_encode(const struct region *r, uint8_t block[REGION_BLOCK])
{
    struct region copy = *r;
    uint64_t magic = r->complete ? MAGIC_DONE : MAGIC_DRAFT;
    uint32_t version = VERSION, data = r->data_offset > 0;
    memset(block, 0, REGION_BLOCK);
    fields(&(struct cursor){.write = block}, &copy, &magic, &version, &data);
    sum_of(block, REGION_BLOCK - SUM_BYTES, block + REGION_BLOCK - SUM_BYTES);
}

static bool sizes_possible(const struct region *r)
{
    return r->latent && r->latent <= 1 << 20 && r->latent % GROUP == 0 && r->band &&
           r->band <= 1 << 20 && r->band % GROUP == 0 && r->bands_all &&
           r->bands_all <= SHAPE_BANDS && (uint64_t)r->band * r->bands_all == r->expert_width &&
           r->layers_all <= SHAPE_LAYERS && r->dense_layers < r->layers_all && r->experts_all &&
           r->experts_all <= 65536 && r->chosen && r->chosen <= r->experts_all &&
           r->situ[0] > 0 && r->situ[1] > 0;
}

static bool tiles_possible(const struct region *r)
{
    return runs_sound(&r->layers, r->layers_all) && r->layers.first[0] >= r->dense_layers &&
           runs_sound(&r->experts, r->experts_all) && r->bands &&
           (r->bands_all == 64 || !(r->bands >> r->bands_all)) &&
           r->layers.count * r->experts.count <= TILE_BOXES;
}

static const char *check_fields(struct region *r, bool data)
{
    uint64_t bytes = r->tile_bytes, offset = r->data_offset;
    if (!sizes_possible(r))
        return "its superblock has impossible sizes";
    if (!tiles_possible(r))
        return "its superblock names impossible tiles";
    derive(r, data);
    if (r->tile_bytes != bytes || r->data_offset != offset || r->done > r->tiles)
        return "its superblock contradicts itself";
    return NULL;
}

int region_decode(struct region *r, const uint8_t block[REGION_BLOCK], const char **ret_why)
{
    struct region made = {0};
    uint8_t sum[SUM_BYTES];
    uint64_t magic = 0;
    uint32_t version = 0, data = 0;

    fields(&(struct cursor){.read = block}, &made, &magic, &version, &data);
    sum_of(block, REGION_BLOCK - SUM_BYTES, sum);
    if (magic != MAGIC_DONE && magic != MAGIC_DRAFT)
        *ret_why = "it is not a region of Kapok";
    else if (memcmp(sum, block + REGION_BLOCK - SUM_BYTES, SUM_BYTES) != 0)
        *ret_why = "its superblock is damaged (checksum)";
    else if (version != VERSION)
        *ret_why = "it is a region of another version of Kapok";
    else
        *ret_why = check_fields(&made, data);
    if (*ret_why)
        return -EBADMSG;
    made.complete = magic == MAGIC_DONE;
    *r = made;
    return 0;
}

int region_check(const struct region *r, const char *path, const struct checkpoint *c,
                 struct problems *p)
{
    const struct shape *s = &c->shape;
    char mine[33], its[33];
    if (memcmp(r->digest, c->digest, sizeof r->digest) != 0) {
        checkpoint_digest_text(c->digest, mine);
        checkpoint_digest_text(r->digest, its);
        problems_add(p, "%s belongs to another checkpoint: model digest %s, expected %s", path,
                     its, mine);
        return -EPROTO;
    }
    if (r->layers_all == s->layers && r->dense_layers == s->dense_layers &&
        r->experts_all == s->experts && r->latent == s->latent &&
        r->expert_width == s->expert_width && r->band == s->band)
        return 0;
    problems_add(p, "%s has tiles that %s does not have", path, c->folder);
    return -EINVAL;
}

/* ---- tiles ----------------------------------------------------------------------------- */

struct region_tile region_view(const struct region *r, const uint8_t *bytes)
{
    size_t rise = rise_bytes(r), scales = rise_scales(r);
    return (struct region_tile){
        .w1 = bytes,
        .s1 = bytes + rise,
        .w3 = bytes + rise + scales,
        .s3 = bytes + 2 * rise + scales,
        .w2 = bytes + 2 * (rise + scales),
        .s2 = bytes + 2 * (rise + scales) + rise,
        .w2_stride = r->band / 2,
        .s2_stride = r->band / GROUP,
    };
}

/* w2's columns and their scales, one row after the other. */
static void gather_columns(const struct region *r, const struct region_tile *t, uint8_t *out)
{
    size_t row = r->band / 2, scales = r->band / GROUP;
    for (size_t i = 0; i < r->latent; i++)
        memcpy(out + i * row, t->w2 + i * t->w2_stride, row);
    out += r->latent * row;
    for (size_t i = 0; i < r->latent; i++)
        memcpy(out + i * scales, t->s2 + i * t->s2_stride, scales);
}

void region_gather(const struct region *r, const struct region_tile *t, uint8_t *out)
{
    size_t rise = rise_bytes(r), scales = rise_scales(r);
    memcpy(out, t->w1, rise);
    memcpy(out + rise, t->s1, scales);
    memcpy(out + rise + scales, t->w3, rise);
    memcpy(out + 2 * rise + scales, t->s3, scales);
    gather_columns(r, t, out + 2 * (rise + scales));
}

size_t region_scratch(const struct region *r)
{
    return rise_bytes(r) + rise_scales(r);
}

static bool is_packed(const struct region *r, const struct region_tile *t)
{
    struct region_tile v = region_view(r, t->w1);
    return t->s1 == v.s1 && t->w3 == v.w3 && t->s3 == v.s3 && t->w2 == v.w2 && t->s2 == v.s2 &&
           t->w2_stride == v.w2_stride;
}

void region_sum(const struct region *r, const struct region_tile *t, uint8_t *scratch,
                uint8_t ret_sum[SUM_BYTES])
{
    size_t rise = rise_bytes(r), scales = rise_scales(r);
    if (is_packed(r, t)) {
        sum_of(t->w1, r->tile_bytes, ret_sum);
        return;
    }
    gather_columns(r, t, scratch);
    struct sum_piece piece[] = {{t->w1, rise},
                                {t->s1, scales},
                                {t->w3, rise},
                                {t->s3, scales},
                                {scratch, rise + scales}};
    sum_of_pieces(piece, 5, ret_sum);
}

bool region_has_nan(const struct region *r, const struct region_tile *t)
{
    size_t scales = rise_scales(r);
    if (memchr(t->s1, 255, scales) || memchr(t->s3, 255, scales))
        return true;
    for (size_t i = 0; i < r->latent; i++)
        if (memchr(t->s2 + i * t->s2_stride, 255, r->band / GROUP))
            return true;
    return false;
}
