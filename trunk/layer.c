/* A layer, in the order of the report; trunk/weights_plan.h lists its tensors in this order. */
#include "trunk/layer.h"

#include "trunk/feed.h"
#include "trunk/kda.h"
#include "trunk/mla.h"
#include "trunk/moe.h"
#include "trunk/residual.h"
#include "trunk/rowwise.h"
#include "trunk/vectors.h"

/* x = norm(mix of the sources), in lane order. */
static void read_residual(struct pass *p, const enum weights_role role[3], float *h, float *x)
{
    size_t rows = p->batch.rows, n = p->shape->hidden;
    residual_mix(p, vectors_query(p, role[0], role[1]), h);
    rowwise_norm(p, h, vectors_take(p, role[2], n), rows, n);
    rowwise_lane(p, x, h, rows, n);
}

void layer_run(struct pass *p, uint32_t layer)
{
    static const enum weights_role before_attention[3] = {
        WEIGHTS_ATTN_RES_NORM, WEIGHTS_ATTN_RES_PROJ, WEIGHTS_INPUT_NORM};
    static const enum weights_role before_feed[3] = {WEIGHTS_MLP_RES_NORM, WEIGHTS_MLP_RES_PROJ,
                                                     WEIGHTS_POST_NORM};
    const struct shape *s = p->shape;
    size_t rows = p->batch.rows, mark = pass_mark(p);
    float *h = pass_floats(p, rows * s->hidden); /* also what a sub-layer gives */
    float *x = pass_floats(p, rows * kernels_padded(s->hidden));

    read_residual(p, before_attention, h, x);
    if (layer % s->residual_block == 0)
        residual_push(p);
    if (s->is_mla[layer])
        mla_run(p, layer, x, h);
    else
        kda_run(p, layer, x, h);
    residual_add(p, h);

    read_residual(p, before_feed, h, x);
    if (shape_is_moe(s, layer))
        moe_run(p, layer, x, h);
    else
        feed_run(p, s->dense_width, x, h);
    residual_add(p, h);
    pass_release(p, mark);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t layer_room(const struct shape *s, const uint32_t layers[2], size_t rows, size_t heads)
{
    size_t most = 0;
    for (uint32_t layer = layers[0]; layer < layers[1]; layer++) {
        most = larger(most, s->is_mla[layer] ? mla_room(s, rows, heads) : kda_room(s, rows));
        most = larger(most, shape_is_moe(s, layer) ? moe_room(s, rows)
                                                   : feed_room(rows, s->dense_width));
    }
    return most + pass_room(rows * s->hidden) + pass_room(rows * kernels_padded(s->hidden)) +
           6 * pass_room(s->hidden);
}
