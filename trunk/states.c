/*
 * Sequences: tables and places; the arithmetic on them is kda.c's and mla.c's.
 *
 * Decided: two halves instead of one state and a replay of every row, because committing all
 * pending rows is what happens nearly always, and then costs nothing. Records are for drafts,
 * of which a few rows are accepted: RECORDS_LEAST rows of them, or as many more as fit
 * RECORD_BYTES a sequence, up to RECORDS_MOST. A row's record takes 20 MB at the released
 * shape.
 */
#include "trunk/states.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define RECORD_BYTES  ((uint64_t)64 << 20)
#define RECORDS_LEAST 8
#define RECORDS_MOST  64

static size_t inner(const struct shape *s)
{
    return (size_t)s->kda_heads * s->kda_dim;
}

static size_t half_floats(const struct shape *s)
{
    return inner(s) * s->kda_dim + 3 * STATES_TAPS * inner(s);
}

static size_t record_floats(const struct shape *s)
{
    return 6 * inner(s) + s->kda_heads;
}

static void count_layers(const struct shape *s, const struct states_options *o,
                         uint32_t ret_count[2])
{
    ret_count[0] = ret_count[1] = 0;
    for (uint32_t layer = o->layer_first; layer < o->layer_end; layer++)
        ret_count[s->is_mla[layer]]++;
}

static uint32_t count_records(const struct shape *s, const struct states_options *o,
                              uint32_t kda_layers)
{
    uint64_t row = record_floats(s) * sizeof(float) * (kda_layers ? kda_layers : 1);
    uint64_t rows = RECORD_BYTES / row;
    if (rows < RECORDS_LEAST)
        rows = RECORDS_LEAST;
    if (rows > RECORDS_MOST)
        rows = RECORDS_MOST;
    return rows < o->rows_most ? (uint32_t)rows : o->rows_most;
}

/* A page more for each sequence: whatever is asked for, `positions` of them can be given. */
static uint64_t count_pages(const struct states_options *o)
{
    return (o->positions + STATES_PAGE - 1) / STATES_PAGE + o->sequences;
}

struct sizes {
    uint64_t kda, record, latent, tables;
};

static struct sizes measure(const struct shape *s, const struct states_options *o)
{
    uint32_t layers[2];
    count_layers(s, o, layers);
    uint64_t records = count_records(s, o, layers[0]), pages = count_pages(o);
    return (struct sizes){
        .kda = (uint64_t)o->sequences * 2 * layers[0] * half_floats(s) * sizeof(float),
        .record = o->sequences * records * layers[0] * record_floats(s) * sizeof(float),
        .latent = pages * layers[1] * STATES_PAGE * states_latent_row(s) * sizeof(float),
        .tables = o->sequences * sizeof(struct state) + (o->sequences + 1) * pages * 4,
    };
}

uint64_t states_bytes(const struct shape *s, const struct states_options *o)
{
    struct sizes z = measure(s, o);
    return z.kda + z.record + z.latent + z.tables;
}

static void number_layers(struct states *ss)
{
    uint16_t next[2] = {0, 0};
    for (uint32_t l = ss->options.layer_first; l < ss->options.layer_end; l++)
        ss->ordinal[l] = next[ss->shape->is_mla[l]]++;
    ss->kda_layers = next[0];
    ss->mla_layers = next[1];
}

static void lay_tables(struct states *ss, void *tables)
{
    ss->state = tables;
    ss->page_stack = (uint32_t *)(ss->state + ss->options.sequences);
    uint32_t *next = ss->page_stack + ss->pages;
    for (uint32_t i = 0; i < ss->options.sequences; i++, next += ss->pages)
        ss->state[i].page = next;
    for (uint32_t i = 0; i < ss->pages; i++)
        ss->page_stack[i] = ss->pages - 1 - i;
    ss->pages_free = ss->pages;
}

int states_open(struct states *ss, const struct shape *s, const struct states_options *o,
                struct memory *m)
{
    void *kda, *record, *latent, *tables;
    struct sizes z = measure(s, o);
    int r = memory_take(m, "kda states", z.kda, &kda);
    if (!r)
        r = memory_take(m, "kda records", z.record, &record);
    if (!r)
        r = memory_take(m, "latent cache", z.latent, &latent);
    if (!r)
        r = memory_take(m, "sequence tables", z.tables, &tables);
    if (r)
        return r;
    *ss = (struct states){.shape = s, .options = *o, .kda = kda, .record = record};
    ss->latent = latent;
    ss->pages = (uint32_t)count_pages(o);
    number_layers(ss);
    ss->records = count_records(s, o, ss->kda_layers);
    lay_tables(ss, tables);
    return 0;
}

struct state *states_find(struct states *ss, uint64_t id)
{
    for (uint32_t i = 0; i < ss->options.sequences; i++)
        if (ss->state[i].open && ss->state[i].id == id)
            return &ss->state[i];
    return NULL;
}

static struct state *find_idle(struct states *ss)
{
    for (uint32_t i = 0; i < ss->options.sequences; i++)
        if (!ss->state[i].open)
            return &ss->state[i];
    return NULL;
}

static void give_pages(struct states *ss, struct state *st)
{
    while (st->pages)
        ss->page_stack[ss->pages_free++] = st->page[--st->pages];
}

int states_begin(struct states *ss, uint64_t id, uint32_t positions, char *why, size_t size)
{
    struct state *st = states_find(ss, id);
    uint32_t wanted = (positions + STATES_PAGE - 1) / STATES_PAGE;
    uint32_t room = ss->pages_free + (st ? st->pages : 0);
    if (!st)
        st = find_idle(ss);
    if (!st) {
        snprintf(why, size, "no room for another sequence: %u are open, %u at most",
                 ss->options.sequences, ss->options.sequences);
        return -ENOSPC;
    }
    if (wanted > room) {
        snprintf(why, size, "no room for a sequence of %u positions: %llu are free of %llu",
                 positions, (unsigned long long)room * STATES_PAGE,
                 (unsigned long long)ss->pages * STATES_PAGE);
        return -ENOSPC;
    }
    give_pages(ss, st);
    st->id = id;
    st->open = true;
    st->committed = st->pending = 0;
    st->room = positions;
    while (st->pages < wanted)
        st->page[st->pages++] = ss->page_stack[--ss->pages_free];
    return 0;
}

void states_end(struct states *ss, uint64_t id)
{
    struct state *st = states_find(ss, id);
    if (!st)
        return;
    give_pages(ss, st);
    st->open = false;
}

/* ---- places ----------------------------------------------------------------------------- */

static struct states_half half_of(const struct states *ss, const struct state *st,
                                  unsigned half, uint32_t layer)
{
    size_t sequence = (size_t)(st - ss->state);
    size_t at = (sequence * 2 + half) * ss->kda_layers + ss->ordinal[layer];
    float *recurrent = ss->kda + at * half_floats(ss->shape);
    return (struct states_half){recurrent, recurrent + inner(ss->shape) * ss->shape->kda_dim};
}

struct states_half states_base(const struct states *ss, const struct state *st, uint32_t layer)
{
    return half_of(ss, st, st->base, layer);
}

struct states_half states_tip(const struct states *ss, const struct state *st, uint32_t layer)
{
    return half_of(ss, st, !st->base, layer);
}

struct states_record states_record(const struct states *ss, const struct state *st,
                                   uint32_t layer, uint32_t row)
{
    size_t n = inner(ss->shape), sequence = (size_t)(st - ss->state);
    size_t at = (sequence * ss->kda_layers + ss->ordinal[layer]) * ss->records + row;
    float *r = ss->record + at * record_floats(ss->shape);
    assert(row < ss->records);
    return (struct states_record){
        r, r + n, r + 2 * n, {r + 3 * n, r + 4 * n, r + 5 * n}, r + 6 * n};
}

float *states_latent(const struct states *ss, const struct state *st, uint32_t layer,
                     uint32_t position)
{
    assert(position < st->pages * STATES_PAGE);
    size_t page = st->page[position / STATES_PAGE];
    size_t at = (page * ss->mla_layers + ss->ordinal[layer]) * STATES_PAGE;
    return ss->latent + (at + position % STATES_PAGE) * states_latent_row(ss->shape);
}

/* ---- cutting and copying ---------------------------------------------------------------- */

int states_check_cut(const struct states *ss, const struct state *st, uint32_t length,
                     char *why, size_t size)
{
    if (length < st->committed || length > st->committed + st->pending) {
        snprintf(why, size,
                 "sequence %llu cannot be cut to %u positions: %u are committed, %u pending",
                 (unsigned long long)st->id, length, st->committed, st->pending);
        return -EINVAL;
    }
    if (length > st->committed && length < st->committed + st->pending &&
        st->pending > ss->records && ss->kda_layers) {
        snprintf(why, size,
                 "sequence %llu cannot be cut to %u positions: of %u pending rows only all or "
                 "none can be committed (of up to %u rows any)",
                 (unsigned long long)st->id, length, st->pending, ss->records);
        return -ENOENT;
    }
    return 0;
}

void states_cut(struct state *st, uint32_t accepted)
{
    if (accepted && accepted == st->pending)
        st->base = !st->base;
    st->committed += accepted;
    st->pending = 0;
}

static void copy_state(struct states *ss, const struct state *from, struct state *to)
{
    size_t floats = ss->kda_layers * half_floats(ss->shape);
    to->committed = from->committed;
    if (!from->committed)
        return;
    float *source = ss->kda + ((size_t)(from - ss->state) * 2 + from->base) * floats;
    float *target = ss->kda + ((size_t)(to - ss->state) * 2 + to->base) * floats;
    memcpy(target, source, floats * sizeof *target);
    floats = (size_t)ss->mla_layers * STATES_PAGE * states_latent_row(ss->shape);
    for (uint32_t i = 0; i * STATES_PAGE < from->committed; i++)
        memcpy(ss->latent + to->page[i] * floats, ss->latent + from->page[i] * floats,
               floats * sizeof *target);
}

int states_fork(struct states *ss, const uint64_t from_to[2], uint32_t positions, char *why,
                size_t size)
{
    const struct state *from = states_find(ss, from_to[0]);
    if (!from) {
        snprintf(why, size, "no such sequence: %llu", (unsigned long long)from_to[0]);
        return -ENOENT;
    }
    if (from_to[0] == from_to[1] || positions < from->committed) {
        snprintf(why, size, "sequence %llu of %u positions cannot become %llu with room for %u",
                 (unsigned long long)from_to[0], from->committed,
                 (unsigned long long)from_to[1], positions);
        return -EINVAL;
    }
    int r = states_begin(ss, from_to[1], positions, why, size);
    if (!r)
        copy_state(ss, from, states_find(ss, from_to[1]));
    return r;
}
