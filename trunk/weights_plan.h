/*
 * Which dense tensors a stage consumes, in which order, cut into which blocks.
 *
 * The order is that of the step (trunk/layer.c): for each layer
 *
 *   attention residual and norm
 *     WEIGHTS_ATTN_RES_NORM WEIGHTS_ATTN_RES_PROJ WEIGHTS_INPUT_NORM
 *   KDA: convolutions, decay and norm vectors, then the projections
 *     WEIGHTS_Q_CONV WEIGHTS_K_CONV WEIGHTS_V_CONV WEIGHTS_A_LOG WEIGHTS_DT_BIAS WEIGHTS_O_NORM
 *     WEIGHTS_Q WEIGHTS_K WEIGHTS_V WEIGHTS_F_A WEIGHTS_F_B WEIGHTS_B WEIGHTS_G WEIGHTS_O
 *   MLA:
 *     WEIGHTS_Q_A WEIGHTS_Q_A_NORM WEIGHTS_Q_B WEIGHTS_KV_A WEIGHTS_KV_A_NORM
 *     WEIGHTS_KV_B (blocks of whole heads: W_k and W_v of a head together) WEIGHTS_G WEIGHTS_O
 *   feed-forward
 *     WEIGHTS_MLP_RES_NORM WEIGHTS_MLP_RES_PROJ WEIGHTS_POST_NORM
 *   dense MLP: WEIGHTS_GATE WEIGHTS_UP WEIGHTS_DOWN
 *   MoE: WEIGHTS_ROUTER WEIGHTS_ROUTER_BIAS WEIGHTS_LATENT_DOWN
 *     WEIGHTS_GATE WEIGHTS_UP WEIGHTS_DOWN (the shared experts) WEIGHTS_LATENT_NORM
 *     WEIGHTS_LATENT_UP
 *
 * and after the last layer of the model, the head:
 *     WEIGHTS_HEAD_RES_NORM WEIGHTS_HEAD_RES_PROJ WEIGHTS_HEAD_NORM WEIGHTS_HEAD
 *
 * Every tensor's presence, dtype and shape is checked against the shape while planning.
 */
#ifndef TRUNK_WEIGHTS_PLAN_H
#define TRUNK_WEIGHTS_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/problems.h"
#include "proto/checkpoint.h"

enum weights_role {
    WEIGHTS_ATTN_RES_NORM,
    WEIGHTS_ATTN_RES_PROJ,
    WEIGHTS_INPUT_NORM,
    WEIGHTS_Q_CONV,
    WEIGHTS_K_CONV,
    WEIGHTS_V_CONV,
    WEIGHTS_A_LOG,
    WEIGHTS_DT_BIAS,
    WEIGHTS_O_NORM,
    WEIGHTS_Q,
    WEIGHTS_K,
    WEIGHTS_V,
    WEIGHTS_F_A,
    WEIGHTS_F_B,
    WEIGHTS_B,
    WEIGHTS_Q_A,
    WEIGHTS_Q_A_NORM,
    WEIGHTS_Q_B,
    WEIGHTS_KV_A,
    WEIGHTS_KV_A_NORM,
    WEIGHTS_KV_B,
    WEIGHTS_G,
    WEIGHTS_O,
    WEIGHTS_MLP_RES_NORM,
    WEIGHTS_MLP_RES_PROJ,
    WEIGHTS_POST_NORM,
    WEIGHTS_ROUTER,
    WEIGHTS_ROUTER_BIAS,
    WEIGHTS_LATENT_DOWN,
    WEIGHTS_GATE,
    WEIGHTS_UP,
    WEIGHTS_DOWN,
    WEIGHTS_LATENT_NORM,
    WEIGHTS_LATENT_UP,
    WEIGHTS_HEAD_RES_NORM,
    WEIGHTS_HEAD_RES_PROJ,
    WEIGHTS_HEAD_NORM,
    WEIGHTS_HEAD,
};

/* One tensor. A vector is a matrix of one row; a convolution has `taps` columns. */
struct weights_entry {
    enum weights_role role;
    uint32_t layer;
    uint32_t rows, cols;
    uint32_t block_rows; /* rows of every block but the last */
    uint8_t dtype;       /* SAFETENSORS_BF16 or SAFETENSORS_F32 */
    uint16_t shard;
    uint64_t offset; /* of row 0 in the shard's file */
    uint32_t row_bytes;
};

struct weights_plan {
    struct weights_entry *entry;
    size_t entries;
    size_t head; /* index of the first entry of the head; == entries when there is none */
};

/* Layers [first, end) of the checkpoint, and the head when `end` is its last. `block_bytes`:
 * the most a block may have (one row, or one head of KV_B, always fits). -EINVAL with
 * sentences. */
int weights_plan_open(struct weights_plan *plan, const struct checkpoint *c, uint32_t first,
                      uint32_t end, uint32_t block_bytes, struct problems *p);
void weights_plan_close(struct weights_plan *plan);

const char *weights_plan_role_name(enum weights_role role);

#endif
