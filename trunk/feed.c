/* A gated MLP: see the header. */
#include "trunk/feed.h"

#include "trunk/product.h"
#include "trunk/rowwise.h"

void feed_run(struct pass *p, size_t width, const float *x, float *out)
{
    size_t rows = p->batch.rows, mark = pass_mark(p);
    float *gate = pass_floats(p, rows * width);
    float *up = pass_floats(p, rows * width);
    float *lane = pass_floats(p, rows * kernels_padded(width));
    product_run(p, WEIGHTS_GATE, x, gate, rows);
    product_run(p, WEIGHTS_UP, x, up, rows);
    rowwise_situ(p, gate, up, rows, width);
    rowwise_lane(p, lane, gate, rows, width);
    product_run(p, WEIGHTS_DOWN, lane, out, rows);
    pass_release(p, mark);
}

size_t feed_room(size_t rows, size_t width)
{
    return 2 * pass_room(rows * width) + pass_room(rows * kernels_padded(width));
}
