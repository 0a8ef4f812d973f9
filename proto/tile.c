/* Tile sets and coverage: see the header. */
#include "proto/tile.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t all_bands(const struct shape *s)
{
    return s->bands == 64 ? UINT64_MAX : ((uint64_t)1 << s->bands) - 1;
}

/* One number at *text, which moves behind it. -1 when there is none. */
static int64_t take_number(const char **text)
{
    int64_t n = 0;
    if (!isdigit((unsigned char)**text))
        return -1;
    for (; isdigit((unsigned char)**text); ++*text)
        n = n > UINT32_MAX ? n : n * 10 + (**text - '0');
    return n;
}

/* "a" or "a-b" at *text. */
static int take_range(const char *what, const char **text, uint32_t limit, int64_t range[2],
                      struct problems *p)
{
    const char *whole = *text;
    range[0] = range[1] = take_number(text);
    if (range[0] >= 0 && **text == '-') {
        ++*text;
        range[1] = take_number(text);
    }
    if (range[0] < 0 || range[1] < 0 || (**text && **text != ',')) {
        problems_add(p, "%s %.60s: expected numbers and ranges like 0-5,7", what, whole);
        return -EINVAL;
    }
    if (range[1] < range[0] || range[1] >= (int64_t)limit) {
        problems_add(p, "%s %lld-%lld: expected a range within 0-%u", what, (long long)range[0],
                     (long long)range[1], limit - 1);
        return -EINVAL;
    }
    return 0;
}

int tile_ranges(struct tile_numbers *n, const char *what, const char *text, uint32_t limit,
                struct problems *p)
{
    int64_t next = 0, range[2];
    n->count = 0;
    do {
        if (take_range(what, &text, limit, range, p))
            return -EINVAL;
        if (range[0] < next) {
            problems_add(p, "%s %lld: expected increasing numbers", what, (long long)range[0]);
            return -EINVAL;
        }
        for (next = range[0]; next <= range[1]; next++) {
            if (n->count == n->room)
                return -ENOSPC;
            n->number[n->count++] = (uint32_t)next;
        }
    } while (*text++ == ',');
    return 0;
}

/* Increasing numbers as half-open runs. */
struct runs {
    size_t count;
    uint32_t first[TILE_BOXES], end[TILE_BOXES];
};

static int parse_runs(struct runs *r, const char *what, const char *text, uint32_t limit,
                      struct problems *p)
{
    struct tile_numbers n = {malloc((size_t)limit * sizeof *n.number), limit, 0};
    if (!n.number) {
        problems_add(p, "%s: out of memory", what);
        return -ENOMEM;
    }
    int result = tile_ranges(&n, what, text, limit, p);
    r->count = 0;
    for (size_t i = 0; !result && i < n.count; i++) {
        if (r->count && r->end[r->count - 1] == n.number[i]) {
            r->end[r->count - 1]++;
        } else if (r->count == TILE_BOXES) {
            problems_add(p, "%s: more than %d separate ranges", what, TILE_BOXES);
            result = -EINVAL;
        } else {
            r->first[r->count] = n.number[i];
            r->end[r->count++] = n.number[i] + 1;
        }
    }
    free(n.number);
    return result;
}

static int parse_layers(struct runs *r, const struct shape *s, const char *text,
                        struct problems *p)
{
    if (!text) {
        *r = (struct runs){1, {s->dense_layers}, {s->layers}};
        return 0;
    }
    int result = parse_runs(r, "layers", text, s->layers, p);
    if (!result && r->first[0] < s->dense_layers) {
        problems_add(p, "layers: layer %u has no experts, expected %u-%u", r->first[0],
                     s->dense_layers, s->layers - 1);
        return -EINVAL;
    }
    return result;
}

static int parse_bands(uint64_t *ret_bands, const struct shape *s, const char *text,
                       struct problems *p)
{
    uint32_t number[SHAPE_BANDS];
    struct tile_numbers n = {number, SHAPE_BANDS, 0};
    *ret_bands = text ? 0 : all_bands(s);
    if (!text)
        return 0;
    int r = tile_ranges(&n, "bands", text, s->bands, p);
    for (size_t i = 0; !r && i < n.count; i++)
        *ret_bands |= (uint64_t)1 << number[i];
    return r;
}

int tile_set_parse(struct tile_set *t, const struct shape *s, const char *layers,
                   const char *experts, const char *bands, struct problems *p)
{
    struct runs l, e = {1, {0}, {s->experts}};
    uint64_t mask;
    size_t before = p->count;
    parse_layers(&l, s, layers, p);
    if (experts)
        parse_runs(&e, "experts", experts, s->experts, p);
    parse_bands(&mask, s, bands, p);
    if (p->count > before)
        return -EINVAL;
    if (l.count * e.count > TILE_BOXES) {
        problems_add(p, "layers and experts make %zu boxes of tiles, at most %d are possible",
                     l.count * e.count, TILE_BOXES);
        return -EINVAL;
    }
    t->boxes = 0;
    for (size_t i = 0; i < l.count; i++)
        for (size_t j = 0; j < e.count; j++)
            t->box[t->boxes++] =
                (struct tile_box){l.first[i], l.end[i], e.first[j], e.end[j], mask};
    return 0;
}

int tile_set_check(const struct tile_set *t, const struct shape *s)
{
    if (t->boxes > TILE_BOXES)
        return -EINVAL;
    for (size_t i = 0; i < t->boxes; i++) {
        const struct tile_box *b = &t->box[i];
        if (b->layer_first >= b->layer_end || b->layer_first < s->dense_layers ||
            b->layer_end > s->layers || b->expert_first >= b->expert_end ||
            b->expert_end > s->experts || !b->bands || b->bands & ~all_bands(s))
            return -EINVAL;
    }
    return 0;
}

uint64_t tile_set_bands(const struct tile_set *t, uint32_t layer, uint32_t expert)
{
    uint64_t bands = 0;
    for (size_t i = 0; i < t->boxes; i++) {
        const struct tile_box *b = &t->box[i];
        if (layer >= b->layer_first && layer < b->layer_end && expert >= b->expert_first &&
            expert < b->expert_end)
            bands |= b->bands;
    }
    return bands;
}

uint64_t tile_set_count(const struct tile_set *t, const struct shape *s)
{
    uint64_t count = 0;
    for (uint32_t layer = s->dense_layers; layer < s->layers; layer++)
        for (uint32_t expert = 0; expert < s->experts; expert++)
            count += (uint64_t)__builtin_popcountll(tile_set_bands(t, layer, expert));
    return count;
}

int tile_coverage_open(struct tile_coverage *c, const struct shape *s, uint32_t layer_first,
                       uint32_t layer_end)
{
    if (layer_first < s->dense_layers)
        layer_first = s->dense_layers;
    if (layer_end < layer_first)
        layer_end = layer_first;
    size_t places = (size_t)(layer_end - layer_first) * s->experts;
    uint64_t *mask = calloc(places ? places : 1, sizeof *mask);
    if (!mask)
        return -ENOMEM;
    *c = (struct tile_coverage){s, layer_first, layer_end, mask};
    return 0;
}

void tile_coverage_close(struct tile_coverage *c)
{
    free(c->mask);
    *c = (struct tile_coverage){0};
}

static size_t coverage_places(const struct tile_coverage *c)
{
    return (size_t)(c->layer_end - c->layer_first) * c->shape->experts;
}

void tile_coverage_clear(struct tile_coverage *c)
{
    memset(c->mask, 0, coverage_places(c) * sizeof *c->mask);
}

static void add_box(struct tile_coverage *c, const struct tile_box *b)
{
    uint32_t first = b->layer_first > c->layer_first ? b->layer_first : c->layer_first;
    uint32_t end = b->layer_end < c->layer_end ? b->layer_end : c->layer_end;
    for (uint32_t layer = first; layer < end; layer++)
        for (uint32_t e = b->expert_first; e < b->expert_end; e++)
            c->mask[(size_t)(layer - c->layer_first) * c->shape->experts + e] |= b->bands;
}

void tile_coverage_add(struct tile_coverage *c, const struct tile_set *t)
{
    assert(tile_set_check(t, c->shape) == 0);
    for (size_t i = 0; i < t->boxes; i++)
        add_box(c, &t->box[i]);
}

uint64_t tile_coverage_held(const struct tile_coverage *c)
{
    uint64_t held = 0;
    for (size_t i = 0; i < coverage_places(c); i++)
        held += (uint64_t)__builtin_popcountll(c->mask[i]);
    return held;
}

uint64_t tile_coverage_needed(const struct tile_coverage *c)
{
    return (uint64_t)coverage_places(c) * c->shape->bands;
}

int tile_coverage_missing(const struct tile_coverage *c, uint32_t ret_tile[3])
{
    uint64_t all = all_bands(c->shape);
    for (size_t i = 0; i < coverage_places(c); i++) {
        if (c->mask[i] == all)
            continue;
        ret_tile[0] = c->layer_first + (uint32_t)(i / c->shape->experts);
        ret_tile[1] = (uint32_t)(i % c->shape->experts);
        ret_tile[2] = (uint32_t)__builtin_ctzll(~c->mask[i]);
        return 1;
    }
    return 0;
}
