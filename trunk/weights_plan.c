/*
 * The plan of a pass. One function per part of a layer lists its tensors in the order in which
 * trunk/layer.c consumes them; each line says role, name, dtype and shape, and the checkpoint
 * must agree with every one.
 */
#include "trunk/weights_plan.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_PREFIX     "language_model.model."
#define PLAN_LAYER_MOST 40 /* tensors of one layer, more than any has */
#define PLAN_NAME_BYTES 160

/* What is being built, and the layer whose names are being made. */
struct builder {
    struct weights_plan *plan;
    const struct checkpoint *checkpoint;
    const struct shape *shape;
    struct problems *problems;
    uint32_t block_bytes;
    uint32_t layer;
    char prefix[64];
};

/* How a tensor is written in the release: the numbers of its shape besides rows and columns. */
enum form { FORM_VECTOR, FORM_ROW, FORM_CONVOLUTION, FORM_MATRIX };

static unsigned form_shape(enum form form, uint32_t rows, uint32_t cols, uint32_t dims[3])
{
    switch (form) {
    case FORM_VECTOR:
        dims[0] = cols;
        return 1;
    case FORM_CONVOLUTION:
        dims[0] = rows;
        dims[1] = 1;
        dims[2] = cols;
        return 3;
    default:
        dims[0] = rows;
        dims[1] = cols;
        return 2;
    }
}

/* Rows of a block: everything that is not a matrix comes whole; a matrix in multiples of
 * `grain` rows that fit block_bytes, at least one. */
static uint32_t block_rows(const struct builder *b, enum form form, uint32_t rows,
                           uint32_t row_bytes, uint32_t grain)
{
    if (form != FORM_MATRIX)
        return rows;
    uint32_t grains = b->block_bytes / row_bytes / grain;
    uint64_t fit = (uint64_t)(grains ? grains : 1) * grain;
    return fit < rows ? (uint32_t)fit : rows;
}

struct wanted {
    enum weights_role role;
    const char *name; /* after the prefix */
    enum safetensors_dtype dtype;
    enum form form;
    uint32_t rows, cols, grain;
};

static void add(struct builder *b, struct wanted w)
{
    char name[PLAN_NAME_BYTES];
    snprintf(name, sizeof name, "%s%s", b->prefix, w.name);
    uint32_t dims[3];
    unsigned count = form_shape(w.form, w.rows, w.cols, dims);
    const struct safetensors_tensor *t =
        checkpoint_tensor(b->checkpoint, name, w.dtype, dims, count, b->problems);
    if (!t)
        return;
    unsigned width = w.dtype == SAFETENSORS_F32 ? 4 : 2;
    if (t->offset % width) {
        problems_add(b->problems, "%s: %s starts at byte %llu, expected a multiple of %u",
                     safetensors_path(b->checkpoint->tensors, t->shard), name,
                     (unsigned long long)t->offset, width);
        return;
    }
    uint32_t row_bytes = w.cols * width;
    b->plan->entry[b->plan->entries++] = (struct weights_entry){
        .role = w.role,
        .layer = b->layer,
        .rows = w.rows,
        .cols = w.cols,
        .block_rows = block_rows(b, w.form, w.rows, row_bytes, w.grain),
        .dtype = (uint8_t)w.dtype,
        .shard = t->shard,
        .offset = t->offset,
        .row_bytes = row_bytes,
    };
}

static void vector(struct builder *b, enum weights_role role, const char *name, uint32_t n)
{
    add(b, (struct wanted){role, name, SAFETENSORS_BF16, FORM_VECTOR, 1, n, 1});
}

static void vector_f32(struct builder *b, enum weights_role role, const char *name, uint32_t n)
{
    add(b, (struct wanted){role, name, SAFETENSORS_F32, FORM_VECTOR, 1, n, 1});
}

/* A projection to one number, which the release stores as a matrix of one row. */
static void row(struct builder *b, enum weights_role role, const char *name)
{
    add(b, (struct wanted){role, name, SAFETENSORS_BF16, FORM_ROW, 1, b->shape->hidden, 1});
}

static void convolution(struct builder *b, enum weights_role role, const char *name)
{
    const struct shape *s = b->shape;
    add(b, (struct wanted){role, name, SAFETENSORS_F32, FORM_CONVOLUTION,
                           s->kda_heads * s->kda_dim, s->kda_taps, 1});
}

static void matrix(struct builder *b, enum weights_role role, const char *name, uint32_t rows,
                   uint32_t cols)
{
    add(b, (struct wanted){role, name, SAFETENSORS_BF16, FORM_MATRIX, rows, cols, 1});
}

static void plan_kda(struct builder *b)
{
    const struct shape *s = b->shape;
    uint32_t inner = s->kda_heads * s->kda_dim;
    convolution(b, WEIGHTS_Q_CONV, "self_attn.q_conv1d.weight");
    convolution(b, WEIGHTS_K_CONV, "self_attn.k_conv1d.weight");
    convolution(b, WEIGHTS_V_CONV, "self_attn.v_conv1d.weight");
    /* One number a head, padded with zeros to kda_dim numbers. */
    vector_f32(b, WEIGHTS_A_LOG, "self_attn.A_log", s->kda_dim);
    vector_f32(b, WEIGHTS_DT_BIAS, "self_attn.dt_bias", inner);
    vector_f32(b, WEIGHTS_O_NORM, "self_attn.o_norm.weight", s->kda_dim);
    matrix(b, WEIGHTS_Q, "self_attn.q_proj.weight", inner, s->hidden);
    matrix(b, WEIGHTS_K, "self_attn.k_proj.weight", inner, s->hidden);
    matrix(b, WEIGHTS_V, "self_attn.v_proj.weight", inner, s->hidden);
    matrix(b, WEIGHTS_F_A, "self_attn.f_a_proj.weight", s->kda_dim, s->hidden);
    matrix(b, WEIGHTS_F_B, "self_attn.f_b_proj.weight", inner, s->kda_dim);
    matrix(b, WEIGHTS_B, "self_attn.b_proj.weight", s->kda_heads, s->hidden);
    matrix(b, WEIGHTS_G, "self_attn.g_proj.weight", inner, s->hidden);
    matrix(b, WEIGHTS_O, "self_attn.o_proj.weight", s->hidden, inner);
}

static void plan_mla(struct builder *b)
{
    const struct shape *s = b->shape;
    uint32_t inner = s->heads * s->v_dim, per_head = s->nope + s->v_dim;
    matrix(b, WEIGHTS_Q_A, "self_attn.q_a_proj.weight", s->q_rank, s->hidden);
    vector(b, WEIGHTS_Q_A_NORM, "self_attn.q_a_layernorm.weight", s->q_rank);
    matrix(b, WEIGHTS_Q_B, "self_attn.q_b_proj.weight", s->heads * (s->nope + s->pe),
           s->q_rank);
    matrix(b, WEIGHTS_KV_A, "self_attn.kv_a_proj_with_mqa.weight", s->kv_rank + s->pe,
           s->hidden);
    vector(b, WEIGHTS_KV_A_NORM, "self_attn.kv_a_layernorm.weight", s->kv_rank);
    add(b, (struct wanted){WEIGHTS_KV_B, "self_attn.kv_b_proj.weight", SAFETENSORS_BF16,
                           FORM_MATRIX, s->heads * per_head, s->kv_rank, per_head});
    matrix(b, WEIGHTS_G, "self_attn.g_proj.weight", inner, s->hidden);
    matrix(b, WEIGHTS_O, "self_attn.o_proj.weight", s->hidden, inner);
}

static void plan_dense(struct builder *b)
{
    const struct shape *s = b->shape;
    matrix(b, WEIGHTS_GATE, "mlp.gate_proj.weight", s->dense_width, s->hidden);
    matrix(b, WEIGHTS_UP, "mlp.up_proj.weight", s->dense_width, s->hidden);
    matrix(b, WEIGHTS_DOWN, "mlp.down_proj.weight", s->hidden, s->dense_width);
}

static void plan_moe(struct builder *b)
{
    const struct shape *s = b->shape;
#define MOE "block_sparse_moe."
    matrix(b, WEIGHTS_ROUTER, MOE "gate.weight", s->experts, s->hidden);
    vector_f32(b, WEIGHTS_ROUTER_BIAS, MOE "gate.e_score_correction_bias", s->experts);
    matrix(b, WEIGHTS_LATENT_DOWN, MOE "routed_expert_down_proj.weight", s->latent, s->hidden);
    matrix(b, WEIGHTS_GATE, MOE "shared_experts.gate_proj.weight", s->shared_width, s->hidden);
    matrix(b, WEIGHTS_UP, MOE "shared_experts.up_proj.weight", s->shared_width, s->hidden);
    matrix(b, WEIGHTS_DOWN, MOE "shared_experts.down_proj.weight", s->hidden, s->shared_width);
    vector(b, WEIGHTS_LATENT_NORM, MOE "routed_expert_norm.weight", s->latent);
    matrix(b, WEIGHTS_LATENT_UP, MOE "routed_expert_up_proj.weight", s->hidden, s->latent);
#undef MOE
}

static void plan_layer(struct builder *b, uint32_t layer)
{
    const struct shape *s = b->shape;
    b->layer = layer;
    snprintf(b->prefix, sizeof b->prefix, PLAN_PREFIX "layers.%u.", layer);
    vector(b, WEIGHTS_ATTN_RES_NORM, "self_attention_res_norm.weight", s->hidden);
    row(b, WEIGHTS_ATTN_RES_PROJ, "self_attention_res_proj.weight");
    vector(b, WEIGHTS_INPUT_NORM, "input_layernorm.weight", s->hidden);
    if (s->is_mla[layer])
        plan_mla(b);
    else
        plan_kda(b);
    vector(b, WEIGHTS_MLP_RES_NORM, "mlp_res_norm.weight", s->hidden);
    row(b, WEIGHTS_MLP_RES_PROJ, "mlp_res_proj.weight");
    vector(b, WEIGHTS_POST_NORM, "post_attention_layernorm.weight", s->hidden);
    if (shape_is_moe(s, layer))
        plan_moe(b);
    else
        plan_dense(b);
}

static void plan_head(struct builder *b)
{
    const struct shape *s = b->shape;
    b->layer = s->layers;
    snprintf(b->prefix, sizeof b->prefix, PLAN_PREFIX);
    vector(b, WEIGHTS_HEAD_RES_NORM, "output_attn_res_norm.weight", s->hidden);
    row(b, WEIGHTS_HEAD_RES_PROJ, "output_attn_res_proj.weight");
    vector(b, WEIGHTS_HEAD_NORM, "norm.weight", s->hidden);
    snprintf(b->prefix, sizeof b->prefix, "language_model.");
    matrix(b, WEIGHTS_HEAD, "lm_head.weight", s->vocab, s->hidden);
}

int weights_plan_open(struct weights_plan *plan, const struct checkpoint *c, uint32_t first,
                      uint32_t end, uint32_t block_bytes, struct problems *p)
{
    assert(first < end && end <= c->shape.layers);
    size_t found = p->count;
    struct weights_plan made = {0};
    made.entry = calloc((size_t)(end - first + 1) * PLAN_LAYER_MOST, sizeof *made.entry);
    if (!made.entry)
        return -ENOMEM;
    struct builder b = {&made, c, &c->shape, p, block_bytes, 0, ""};
    for (uint32_t layer = first; layer < end; layer++)
        plan_layer(&b, layer);
    made.head = made.entries;
    if (end == c->shape.layers)
        plan_head(&b);
    if (p->count > found) {
        weights_plan_close(&made);
        return -EINVAL;
    }
    *plan = made;
    return 0;
}

void weights_plan_close(struct weights_plan *plan)
{
    free(plan->entry);
    *plan = (struct weights_plan){0};
}

const char *weights_plan_role_name(enum weights_role role)
{
    static const char *const name[] = {
        [WEIGHTS_ATTN_RES_NORM] = "self_attention_res_norm",
        [WEIGHTS_ATTN_RES_PROJ] = "self_attention_res_proj",
        [WEIGHTS_INPUT_NORM] = "input_layernorm",
        [WEIGHTS_Q_CONV] = "q_conv1d",
        [WEIGHTS_K_CONV] = "k_conv1d",
        [WEIGHTS_V_CONV] = "v_conv1d",
        [WEIGHTS_A_LOG] = "A_log",
        [WEIGHTS_DT_BIAS] = "dt_bias",
        [WEIGHTS_O_NORM] = "o_norm",
        [WEIGHTS_Q] = "q_proj",
        [WEIGHTS_K] = "k_proj",
        [WEIGHTS_V] = "v_proj",
        [WEIGHTS_F_A] = "f_a_proj",
        [WEIGHTS_F_B] = "f_b_proj",
        [WEIGHTS_B] = "b_proj",
        [WEIGHTS_Q_A] = "q_a_proj",
        [WEIGHTS_Q_A_NORM] = "q_a_layernorm",
        [WEIGHTS_Q_B] = "q_b_proj",
        [WEIGHTS_KV_A] = "kv_a_proj_with_mqa",
        [WEIGHTS_KV_A_NORM] = "kv_a_layernorm",
        [WEIGHTS_KV_B] = "kv_b_proj",
        [WEIGHTS_G] = "g_proj",
        [WEIGHTS_O] = "o_proj",
        [WEIGHTS_MLP_RES_NORM] = "mlp_res_norm",
        [WEIGHTS_MLP_RES_PROJ] = "mlp_res_proj",
        [WEIGHTS_POST_NORM] = "post_attention_layernorm",
        [WEIGHTS_ROUTER] = "router gate",
        [WEIGHTS_ROUTER_BIAS] = "e_score_correction_bias",
        [WEIGHTS_LATENT_DOWN] = "routed_expert_down_proj",
        [WEIGHTS_GATE] = "gate_proj",
        [WEIGHTS_UP] = "up_proj",
        [WEIGHTS_DOWN] = "down_proj",
        [WEIGHTS_LATENT_NORM] = "routed_expert_norm",
        [WEIGHTS_LATENT_UP] = "routed_expert_up_proj",
        [WEIGHTS_HEAD_RES_NORM] = "output_attn_res_norm",
        [WEIGHTS_HEAD_RES_PROJ] = "output_attn_res_proj",
        [WEIGHTS_HEAD_NORM] = "norm",
        [WEIGHTS_HEAD] = "lm_head",
    };
    return name[role];
}
