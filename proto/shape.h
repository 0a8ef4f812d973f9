/*
 * The model's shape: every number of the release's config.json that decides a computation.
 *
 * Nothing is defaulted. A missing, mistyped or impossible field is a problem that names the
 * field, and all of them are found before the reader gives up. The file is nested (the text
 * model is under "text_config") and its layer lists are one-based; here layers count from 0.
 * Source: model.md section 1. Filled once, then read-only.
 */
#ifndef PROTO_SHAPE_H
#define PROTO_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/problems.h"

#define SHAPE_LAYERS  256 /* more are refused */
#define SHAPE_BANDS   64  /* bits of a band mask; a shape with more bands is refused */
#define SHAPE_SOURCES 32  /* snapshots + 1 an attention residual may mix */

struct shape {
    uint32_t hidden, layers, vocab, context;
    uint32_t dense_layers; /* the first so many layers have a dense MLP */
    uint32_t dense_width;

    uint32_t heads; /* MLA */
    uint32_t q_rank, kv_rank;
    uint32_t nope, pe, v_dim; /* per head */

    uint32_t kda_heads, kda_dim, kda_taps;
    float kda_floor; /* gate_lower_bound, negative */

    uint32_t residual_block; /* a snapshot is pushed when layer % residual_block == 0 */

    uint32_t experts, chosen;
    uint32_t expert_width, shared_width, latent;
    float routed_scaling;
    float situ[2]; /* beta of the gate half, beta of the linear half */
    double norm_eps;

    uint32_t band, bands;         /* columns of a band; bands of an expert (docs/numerics.md) */
    int32_t end_token;            /* eos_token_id of the root: generation stops on it */
    uint8_t is_mla[SHAPE_LAYERS]; /* 1: MLA, 0: KDA */
};

/* Reads `folder`/config.json. -EINVAL with sentences in `p`, or what the system said. */
int shape_read(struct shape *s, const char *folder, struct problems *p);

/* The same from text already in memory; `name` begins every sentence. */
int shape_parse(struct shape *s, const char *name, const char *text, size_t length,
                struct problems *p);

/* Has this layer routed experts? */
static inline bool shape_is_moe(const struct shape *s, uint32_t layer)
{
    return layer >= s->dense_layers;
}

/* Snapshots that exist when `layer` begins, before it pushes its own. */
static inline uint32_t shape_snapshots(const struct shape *s, uint32_t layer)
{
    return (layer + s->residual_block - 1) / s->residual_block;
}

/* Tiles of the whole model: layers with experts x experts x bands. */
static inline uint64_t shape_tiles(const struct shape *s)
{
    return (uint64_t)(s->layers - s->dense_layers) * s->experts * s->bands;
}

#endif
