/* The mixture of experts: see the header. The order of things is what lets the expertds read
 * while the trunk computes: hint, latent, begin, shared experts, finish. */
#include "trunk/moe.h"

#include <errno.h>

#include "trunk/feed.h"
#include "trunk/product.h"
#include "trunk/rowwise.h"
#include "trunk/vectors.h"

/* Floats that n 16-bit or 64-bit numbers take. */
#define HALVES(n)  (((n) + 1) / 2)
#define DOUBLES(n) (2 * (n))

/* The choice of every row, in scratch. */
static struct routing choose(struct pass *p, uint32_t layer, const float *x)
{
    const struct shape *s = p->shape;
    size_t rows = p->batch.rows, all = rows * s->chosen;
    uint16_t *expert = (uint16_t *)pass_floats(p, HALVES(all));
    float *weight = pass_floats(p, all);
    float *logits = pass_floats(p, rows * s->experts), *score = pass_floats(p, s->experts);
    product_run(p, WEIGHTS_ROUTER, x, logits, rows);
    const float *bias = vectors_take(p, WEIGHTS_ROUTER_BIAS, s->experts);
    for (size_t t = 0; !p->error && t < rows; t++) {
        struct router r = {
            .logits = logits + t * s->experts,
            .bias = bias,
            .experts = s->experts,
            .chosen = s->chosen,
            .scaling = s->routed_scaling,
            .score = score,
            .expert = expert + t * s->chosen,
            .weight = weight + t * s->chosen,
        };
        if (kernels_route(p->kernels, &r))
            pass_fail(p, -EDOM, "layer %u: a router score is not a number", layer);
    }
    return (struct routing){layer, (uint32_t)rows, s->chosen, expert, weight};
}

/* The sums of the routed experts, normalised and in lane order. */
static const float *gather_sums(struct pass *p)
{
    const struct shape *s = p->shape;
    size_t rows = p->batch.rows;
    int64_t *sum = (int64_t *)pass_floats(p, DOUBLES(rows * s->latent));
    float *r = pass_floats(p, rows * s->latent);
    float *lane = pass_floats(p, rows * kernels_padded(s->latent));
    if (!p->error) {
        char reason[320];
        int error = p->gather->finish(p->gather->context, sum, reason, sizeof reason);
        if (error)
            pass_fail(p, error, "%s", reason);
        else
            p->kernels->settle(r, sum, rows * s->latent);
    }
    rowwise_norm(p, r, vectors_take(p, WEIGHTS_LATENT_NORM, s->latent), rows, s->latent);
    rowwise_lane(p, lane, r, rows, s->latent);
    return lane;
}

void moe_run(struct pass *p, uint32_t layer, const float *x, float *out)
{
    const struct shape *s = p->shape;
    size_t rows = p->batch.rows, mark = pass_mark(p);
    struct routing routing = choose(p, layer, x);
    if (!p->error)
        p->gather->hint(p->gather->context, &routing);
    float *z = pass_floats(p, rows * s->latent);
    product_run(p, WEIGHTS_LATENT_DOWN, x, z, rows);
    if (!p->error)
        p->gather->begin(p->gather->context, &routing, z);
    bool begun = !p->error;
    float *shared = pass_floats(p, rows * s->hidden);
    feed_run(p, s->shared_width, x, shared);
    if (begun && p->error)
        p->gather->drop(p->gather->context);
    product_run(p, WEIGHTS_LATENT_UP, gather_sums(p), out, rows);
    rowwise_add(p, out, shared, rows, s->hidden);
    pass_release(p, mark);
}

size_t moe_room(const struct shape *s, size_t rows)
{
    size_t all = rows * s->chosen;
    size_t tail = pass_room(DOUBLES(rows * s->latent)) + pass_room(rows * s->latent) +
                  pass_room(rows * kernels_padded(s->latent)) + pass_room(s->latent);
    size_t feed = feed_room(rows, s->shared_width);
    return pass_room(HALVES(all)) + pass_room(all) + pass_room(rows * s->experts) +
           2 * pass_room(s->experts) + pass_room(rows * s->latent) +
           pass_room(rows * s->hidden) + (tail > feed ? tail : feed);
}
