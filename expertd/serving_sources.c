/* The first region says which model it is; the others must agree. */
#include "expertd/serving_sources.h"

#include <errno.h>
#include <string.h>

/* ---- all tiles together ---------------------------------------------------------------- */

static bool same_ranges(const struct tile_box *a, const struct tile_box *b)
{
    return a->layer_first == b->layer_first && a->layer_end == b->layer_end &&
           a->expert_first == b->expert_first && a->expert_end == b->expert_end;
}

static int add_box(struct tile_set *t, const struct tile_box *b, struct problems *p)
{
    for (size_t i = 0; i < t->boxes; i++)
        if (same_ranges(&t->box[i], b)) {
            t->box[i].bands |= b->bands;
            return 0;
        }
    if (t->boxes == TILE_BOXES) {
        problems_add(p, "the regions make more than %d boxes of tiles", TILE_BOXES);
        return -EINVAL;
    }
    t->box[t->boxes++] = *b;
    return 0;
}

static int add_tiles(struct tile_set *all, const struct tile_set *some, struct problems *p)
{
    int r = 0;
    for (size_t i = 0; !r && i < some->boxes; i++)
        r = add_box(all, &some->box[i], p);
    return r;
}

/* ---- opening --------------------------------------------------------------------------- */

static int open_inplace(struct serving_sources *s, const struct serving_options *o,
                        struct memory *m, struct problems *p)
{
    int r = checkpoint_open(&s->checkpoint, o->checkpoint, p);
    if (r)
        return r;
    s->shape = s->checkpoint.shape;
    memcpy(s->digest, s->checkpoint.digest, sizeof s->digest);
    r = tile_set_parse(&s->tiles, &s->shape, o->layers, o->experts, o->bands, p);
    if (!r)
        r = source_inplace_open(&s->source[0], &s->checkpoint, &s->tiles,
                                (bool[]){o->buffered, !o->unchecked}, m, p);
    s->count = !r;
    return r;
}

static int agree(struct serving_sources *s, const char *path, const struct region *g,
                 bool first, struct problems *p)
{
    struct shape shape;
    region_shape(g, &shape);
    if (first) {
        s->shape = shape;
        memcpy(s->digest, g->digest, sizeof s->digest);
        return 0;
    }
    if (!memcmp(s->digest, g->digest, sizeof s->digest) &&
        !memcmp(&s->shape, &shape, sizeof shape))
        return 0;
    problems_add(p, "%s belongs to another checkpoint than the first region", path);
    return -EPROTO;
}

static int open_region(struct serving_sources *s, const struct serving_options *o, size_t i,
                       struct memory *m, struct problems *p)
{
    struct region g;
    int r = source_packed_peek(o->region[i], &g, p);
    if (!r)
        r = agree(s, o->region[i], &g, i == 0, p);
    if (!r)
        r = source_packed_open(&s->source[i], o->region[i], &s->shape,
                               (bool[]){o->buffered, !o->unchecked}, m, p);
    if (!r) {
        s->count++;
        r = add_tiles(&s->tiles, &s->source[i].tiles, p);
    }
    return r;
}

int serving_sources_open(struct serving_sources *s, const struct serving_options *o,
                         struct memory *m, struct problems *p)
{
    int r = -EINVAL;
    if (!o->checkpoint == !o->regions)
        problems_add(p, "either --checkpoint or --region says what to serve");
    else if (o->regions > SERVING_REGIONS)
        problems_add(p, "--region: %zu of them, at most %d", o->regions, SERVING_REGIONS);
    else if (o->regions && (o->layers || o->experts || o->bands))
        problems_add(p, "--layers, --experts and --bands go with --checkpoint; a region is "
                        "served as it was packed");
    else
        r = 0;
    if (!r && o->checkpoint)
        r = open_inplace(s, o, m, p);
    for (size_t i = 0; !r && i < o->regions; i++)
        r = open_region(s, o, i, m, p);
    return r;
}

void serving_sources_close(struct serving_sources *s)
{
    for (size_t i = 0; i < s->count; i++)
        source_close(&s->source[i]);
    checkpoint_close(&s->checkpoint);
}
