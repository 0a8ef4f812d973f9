/* The tail. The residual runs over all rows, as in a layer; only the wanted ones go on. */
#include "trunk/head.h"

#include <string.h>

#include "trunk/product.h"
#include "trunk/residual.h"
#include "trunk/rowwise.h"
#include "trunk/vectors.h"

void head_run(struct pass *p, const uint32_t *row, size_t wanted, float *logits)
{
    size_t n = p->shape->hidden, mark = pass_mark(p);
    float *mix = pass_floats(p, p->batch.rows * n);
    float *y = pass_floats(p, wanted * n);
    float *lane = pass_floats(p, wanted * kernels_padded(n));
    residual_mix(p, vectors_query(p, WEIGHTS_HEAD_RES_NORM, WEIGHTS_HEAD_RES_PROJ), mix);
    for (size_t i = 0; !p->error && i < wanted; i++)
        memcpy(y + i * n, mix + row[i] * n, n * sizeof *y);
    rowwise_norm(p, y, vectors_take(p, WEIGHTS_HEAD_NORM, n), wanted, n);
    rowwise_lane(p, lane, y, wanted, n);
    product_run(p, WEIGHTS_HEAD, lane, logits, wanted);
    pass_release(p, mark);
}

size_t head_room(const struct shape *s, size_t rows, size_t wanted)
{
    return pass_room(rows * s->hidden) + pass_room(wanted * s->hidden) +
           pass_room(wanted * kernels_padded(s->hidden)) + 3 * pass_room(s->hidden);
}
