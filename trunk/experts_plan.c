/* Who is asked for which tiles. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/compute.h"
#include "trunk/experts_private.h"

static uint64_t all_bands(const struct shape *s)
{
    return s->bands == 64 ? UINT64_MAX : ((uint64_t)1 << s->bands) - 1;
}

uint32_t experts_plan_rows(const struct experts *x, const struct coverage_peer *known)
{
    const struct shape *s = x->shape;
    uint64_t row = compute_bytes(s, 1, 0) + s->chosen * 6;
    uint64_t rows = known->payload_most / row;
    while (rows && compute_bytes(s, (uint32_t)rows, rows * s->chosen) > known->payload_most)
        rows--;
    return rows < x->options.rows_most ? (uint32_t)rows : x->options.rows_most;
}

void experts_plan_wave(struct experts *x)
{
    const struct routing *r = &x->routing;
    uint64_t all = all_bands(x->shape);
    x->left = 0;
    for (uint32_t t = 0; t < x->rows; t++)
        for (uint32_t i = 0; i < r->chosen; i++) {
            uint32_t expert = r->expert[(size_t)(x->first + t) * r->chosen + i];
            uint64_t *place = experts_place(x, x->orphan, t / x->chunk_rows, expert);
            x->left += *place ? 0 : x->shape->bands;
            *place = all;
        }
}

static uint64_t holds(const struct experts *x, const struct experts_peer *p, uint32_t expert)
{
    return p->failed ? 0 : tile_set_bands(&p->known.tiles, x->routing.layer, expert);
}

static bool can_ask(const struct experts *x, const struct experts_peer *p)
{
    return p->known.up && experts_plan_rows(x, &p->known) >= x->chunk_rows;
}

/* The peer with the least to do that holds some of these bands. */
static struct experts_peer *best_peer(struct experts *x, uint32_t expert, uint64_t bands)
{
    struct experts_peer *best = NULL;
    for (size_t i = 0; i < x->peers; i++) {
        struct experts_peer *p = &x->peer[i];
        if (can_ask(x, p) && holds(x, p, expert) & bands && (!best || p->load < best->load))
            best = p;
    }
    return best;
}

/* Does any peer that has not failed hold all of these bands, up or not? */
static bool is_hopeless(const struct experts *x, uint32_t expert, uint64_t bands)
{
    bool failed = false;
    for (size_t i = 0; i < x->peers; i++) {
        bands &= ~holds(x, &x->peer[i], expert);
        failed |= x->peer[i].failed;
    }
    return failed && bands;
}

static void assign_place(struct experts *x, uint32_t chunk, uint32_t expert)
{
    uint64_t *orphan = experts_place(x, x->orphan, chunk, expert);
    struct experts_peer *p;
    while (*orphan && (p = best_peer(x, expert, *orphan)) != NULL) {
        uint64_t bands = holds(x, p, expert) & *orphan;
        *experts_place(x, p->todo, chunk, expert) |= bands;
        *orphan &= ~bands;
        p->load += (uint64_t)__builtin_popcountll(bands);
    }
    if (*orphan && !x->error && is_hopeless(x, expert, *orphan))
        x->error = -EIO; /* x->reason is the sentence of the peer that failed */
}

/* What a peer that went away was to be asked and has not been. */
static void take_back(struct experts *x, struct experts_peer *p)
{
    size_t places = (size_t)EXPERTS_CHUNKS * x->shape->experts;
    for (size_t i = 0; i < places; i++) {
        x->orphan[i] |= p->todo[i];
        p->load -= (uint64_t)__builtin_popcountll(p->todo[i]);
        p->todo[i] = 0;
    }
}

/* A peer that came back with a lower limit cannot take the chunks of this layer; the next step
 * is cut accordingly. */
static void check_limits(struct experts *x)
{
    for (size_t i = 0; x->rows && !x->error && i < x->peers; i++) {
        const struct coverage_peer *known = &x->peer[i].known;
        if (!known->up || experts_plan_rows(x, known) >= x->chunk_rows)
            continue;
        x->error = -EAGAIN;
        snprintf(x->reason, sizeof x->reason, "expertd %s takes only %u rows now, not %u",
                 link_address(known->link), experts_plan_rows(x, known), x->chunk_rows);
    }
}

static void refresh(struct experts *x)
{
    struct coverage_summary now;
    coverage_look(x->options.coverage, &now);
    if (now.generation == x->generation)
        return;
    x->generation = now.generation;
    for (size_t i = 0; i < x->peers; i++)
        coverage_peer(x->options.coverage, i, &x->peer[i].known);
    check_limits(x);
}

void experts_plan_assign(struct experts *x)
{
    refresh(x);
    for (size_t i = 0; i < x->peers; i++)
        if (x->peer[i].load && (x->peer[i].failed || !can_ask(x, &x->peer[i])))
            take_back(x, &x->peer[i]);
    for (uint32_t chunk = 0; chunk * x->chunk_rows < x->rows; chunk++)
        for (uint32_t expert = 0; expert < x->shape->experts; expert++)
            if (*experts_place(x, x->orphan, chunk, expert))
                assign_place(x, chunk, expert);
}

static int describe_orphan(const struct experts *x, char *text, size_t size)
{
    for (size_t i = 0; i < (size_t)EXPERTS_CHUNKS * x->shape->experts; i++)
        if (x->orphan[i])
            return snprintf(text, size, "a holder of expert %zu band %d", i % x->shape->experts,
                            __builtin_ctzll(x->orphan[i]));
    return 0;
}

void experts_plan_describe(const struct experts *x, char *text, size_t size)
{
    size_t length = (size_t)describe_orphan(x, text, size);
    for (size_t i = 0; i < x->peers && length < size; i++) {
        const struct experts_peer *p = &x->peer[i];
        if (!p->load && p->known.up)
            continue;
        length +=
            (size_t)snprintf(text + length, size - length, "%s%s (%s)", length ? ", " : "",
                             link_address(p->known.link), p->known.up ? "up" : p->known.why);
    }
    if (!length)
        snprintf(text, size, "nobody");
}
