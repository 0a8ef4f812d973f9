/*
 * The sequences of a stage: what its layers remember of the positions so far.
 *
 * For KDA a sequence has two *halves* per layer, each a recurrent state [heads][key][value] and
 * the last rows that went into the convolutions. The *base* half is the committed state. A step
 * leaves the state after its rows, which are *pending*, in the *tip* half; committing all of
 * them swaps the halves. For part of them to be committed, the step leaves a *record* of every
 * pending row (k, v, decay, beta and what went into the convolutions), from which kda.c
 * advances the base. Records exist for the first `records` rows of a step; of a longer one (a
 * prefill chunk of a large model) all or none can be committed. For MLA committing is a length:
 * rows beyond it are written over.
 *
 * All memory is taken at start but touched only when used. MLA rows lie in pages of
 * STATES_PAGE positions, for all MLA layers of the stage together; a sequence reserves its
 * pages when it is opened. The step's thread owns everything here.
 */
#ifndef TRUNK_STATES_H
#define TRUNK_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "proto/shape.h"

#define STATES_PAGE 64 /* positions */
#define STATES_TAPS 3  /* rows before the current one that a convolution sees */

struct state {
    uint64_t id;
    bool open;
    uint32_t committed, pending; /* positions */
    uint32_t room;               /* positions it may come to */
    uint8_t base;                /* which half is the base */
    uint32_t *page;              /* of position / STATES_PAGE */
    uint32_t pages;
};

struct states_options {
    uint32_t layer_first, layer_end;
    uint32_t sequences;
    uint64_t positions; /* for all sequences together */
    uint32_t rows_most; /* of one step */
};

struct states {
    const struct shape *shape;
    struct states_options options;
    uint32_t kda_layers, mla_layers;
    uint32_t records; /* rows of a step that may be committed in part */
    uint32_t pages, pages_free;
    uint16_t ordinal[SHAPE_LAYERS]; /* among the stage's layers of its kind */
    struct state *state;            /* [sequences] */
    uint32_t *page_stack;           /* the free ones */
    float *kda;                     /* [sequences][2][kda_layers][half] */
    float *record;                  /* [sequences][kda_layers][records][row] */
    float *latent;                  /* [pages][mla_layers][STATES_PAGE][padded row] */
};

/* Bytes that states_open() will take. */
uint64_t states_bytes(const struct shape *s, const struct states_options *o);

int states_open(struct states *ss, const struct shape *s, const struct states_options *o,
                struct memory *m);

/* NULL when there is none of this id. */
struct state *states_find(struct states *ss, uint64_t id);

/* A sequence without positions; one of this id that is open is emptied. -ENOSPC with a sentence
 * in `why` (of `size` bytes) when there is no room for another or for so many positions; the
 * one that was open stays then. */
int states_begin(struct states *ss, uint64_t id, uint32_t positions, char *why, size_t size);
void states_end(struct states *ss, uint64_t id);

/* `to` begins as a copy of the committed state of `from`. -ENOENT, -ENOSPC, and -EINVAL when
 * they are the same or `positions` is less than is copied. */
int states_fork(struct states *ss, const uint64_t from_to[2], uint32_t positions, char *why,
                size_t size);

/* Could the sequence be cut to this length? 0; -EINVAL or -ENOENT with a sentence. */
int states_check_cut(const struct states *ss, const struct state *st, uint32_t length,
                     char *why, size_t size);

/* After the base has been advanced by `accepted` rows from records, or when all or none of the
 * pending rows are accepted. */
void states_cut(struct state *st, uint32_t accepted);

/* ---- KDA -------------------------------------------------------------------------------- */

/* One half of one layer. */
struct states_half {
    float *recurrent; /* [heads][key][value] */
    float *history;   /* [3 streams q k v][STATES_TAPS, oldest first][heads * dim] */
};

/* Has the base anything but zeros? (It is not even zeroed while nothing is committed.) */
static inline bool states_is_fresh(const struct state *st)
{
    return st->committed == 0;
}

struct states_half states_base(const struct states *ss, const struct state *st, uint32_t layer);
struct states_half states_tip(const struct states *ss, const struct state *st, uint32_t layer);

/* One pending row's record in one layer. */
struct states_record {
    float *k, *v, *alpha; /* [heads * dim] */
    float *into[3];       /* q k v before the convolutions, [heads * dim] each */
    float *beta;          /* [heads] */
};

struct states_record states_record(const struct states *ss, const struct state *st,
                                   uint32_t layer, uint32_t row);

/* ---- MLA -------------------------------------------------------------------------------- */

/* Floats of a cached row: latent and key together, in lane order. */
static inline size_t states_latent_row(const struct shape *s)
{
    return (s->kv_rank + s->pe + 31u) / 32 * 32;
}

/* The row of a position; the rows of its page follow it. */
float *states_latent(const struct states *ss, const struct state *st, uint32_t layer,
                     uint32_t position);

#endif
