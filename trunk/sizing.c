/* Sizes: see the header. */
#include "trunk/sizing.h"

#include <errno.h>
#include <string.h>

#include "proto/step_rows.h"
#include "trunk/embed.h"
#include "trunk/experts.h"
#include "trunk/head.h"
#include "trunk/kda.h"
#include "trunk/layer.h"
#include "trunk/mla.h"
#include "trunk/weights.h"

#define ROWS_USUAL      512
#define ROWS_LEAST      16
#define SEQUENCES_USUAL 8
#define SEQUENCES_LEAST 2 /* one, when two do not fit with the least of the others */
#define POSITIONS_USUAL 65536
#define POSITIONS_LEAST 2048
#define LOGITS_BYTES    ((uint64_t)64 << 20)
#define RING_USUAL      ((uint64_t)256 << 20)
#define AREAS           16 /* areas of a page more each than what is counted here */
#define PAGE            4096

static uint32_t least(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

/* Heads that a block of KV_B holds at most. */
static size_t block_heads(const struct sizing_request *q)
{
    uint32_t rows = 0, per_head = q->shape->nope + q->shape->v_dim;
    for (size_t i = 0; i < q->plan->entries; i++)
        if (q->plan->entry[i].role == WEIGHTS_KV_B && q->plan->entry[i].block_rows > rows)
            rows = q->plan->entry[i].block_rows;
    return rows / per_head;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static uint64_t ring_bytes(const struct sizing_request *q)
{
    uint64_t floor = weights_floor(q->plan);
    uint64_t ring = q->budget / 8 < RING_USUAL ? q->budget / 8 : RING_USUAL;
    if (q->ring)
        return q->ring;
    return ring > floor ? ring : floor;
}

/* Everything that follows from rows, sequences and positions. */
static void measure(struct sizing *z, const struct sizing_request *q)
{
    const struct shape *s = q->shape;
    uint32_t rows = z->rows_most, sources = shape_snapshots(s, q->layers[1]) + 1;
    uint64_t logits = LOGITS_BYTES / ((uint64_t)s->vocab * sizeof(float));
    z->logits_most = least(rows, logits ? logits : 1);
    z->states.rows_most = rows;
    z->heads = block_heads(q);
    size_t head = q->layers[1] == s->layers ? head_room(s, rows, z->logits_most) : 0;
    z->scratch = larger(layer_room(s, q->layers, rows, z->heads), head);
    z->own = larger(kda_own_room(s), mla_own_room(s, least(z->states.positions, s->context)));
    z->source = (size_t)sources * rows * s->hidden;
    z->output = step_rows_reply_bytes(s, q->layers[1], rows, z->logits_most);
    z->needed = states_bytes(s, &z->states) +
                (z->scratch + z->own * q->threads + z->source) * sizeof(float) + z->output +
                experts_bytes(s, q->peers, rows) + embed_bytes(s) + z->ring +
                (uint64_t)(rows + z->states.sequences) * 64 + AREAS * PAGE;
}

/* One of the three that may be halved. */
struct choice {
    bool open;
    uint64_t value, least;
};

static void apply(struct sizing *z, const struct choice c[3])
{
    z->rows_most = (uint32_t)c[0].value;
    z->states.sequences = (uint32_t)c[1].value;
    z->states.positions = c[2].value;
}

/* Halves what saves most. False when nothing is left to halve. */
static bool shrink(struct choice c[3], const struct sizing *z, const struct sizing_request *q)
{
    uint64_t best = 0;
    int chosen = -1;
    for (int i = 0; i < 3; i++) {
        struct choice halved[3];
        struct sizing trial = *z;
        memcpy(halved, c, sizeof halved);
        if (!c[i].open || c[i].value / 2 < c[i].least)
            continue;
        halved[i].value /= 2;
        apply(&trial, halved);
        measure(&trial, q);
        if (chosen < 0 || z->needed - trial.needed > best) {
            best = z->needed - trial.needed;
            chosen = i;
        }
    }
    if (chosen < 0)
        return false;
    c[chosen].value /= 2;
    return true;
}

static struct choice choose(uint64_t given, uint64_t usual, uint64_t lowest)
{
    return (struct choice){!given, given ? given : usual, lowest};
}

/* Halves until half of the budget is enough or nothing is left to halve. */
static void fit(struct sizing *z, const struct sizing_request *q, struct choice c[3])
{
    do {
        apply(z, c);
        measure(z, q);
    } while (z->needed > q->budget / 2 && shrink(c, z, q));
}

int sizing_choose(struct sizing *z, const struct sizing_request *q, struct problems *p)
{
    struct choice c[3] = {choose(q->rows, ROWS_USUAL, ROWS_LEAST),
                          choose(q->sequences, SEQUENCES_USUAL, SEQUENCES_LEAST),
                          choose(q->positions, POSITIONS_USUAL, POSITIONS_LEAST)};
    *z = (struct sizing){.ring = ring_bytes(q)};
    z->states.layer_first = q->layers[0];
    z->states.layer_end = q->layers[1];
    fit(z, q, c);
    c[1].least = 1;
    fit(z, q, c);
    if (z->needed > q->budget) {
        problems_add(p,
                     "--memory: %llu bytes given, at least %llu are needed: %llu for %u "
                     "sequences of %llu positions together, %llu for the ring of weights, the "
                     "rest for steps of %u rows",
                     (unsigned long long)q->budget, (unsigned long long)z->needed,
                     (unsigned long long)states_bytes(q->shape, &z->states),
                     z->states.sequences, (unsigned long long)z->states.positions,
                     (unsigned long long)z->ring, z->rows_most);
        return -ENOSPC;
    }
    z->pinned = q->budget - z->needed;
    return 0;
}
