/* Threads share the rows of a block; every one of them goes through all vectors, so that a row
 * of weights crosses the memory bus once. */
#include "trunk/product.h"

#include <assert.h>

#include "trunk/parallel.h"

#define ROWS_UNIT 16 /* rows of weights a thread takes together */

struct block_work {
    const struct pass *pass;
    const struct weights_block *block;
    const float *x;
    float *y;
    size_t vectors;
};

static void run_rows(void *context, struct parallel_range range)
{
    const struct block_work *w = context;
    const struct weights_entry *e = w->block->entry;
    struct product product = {
        .w = (const uint8_t *)w->block->data + range.first * e->row_bytes,
        .w_stride = e->row_bytes,
        .rows = range.end - range.first,
        .cols = e->cols,
        .x = w->x,
        .x_stride = kernels_padded(e->cols),
        .y = w->y + w->block->row + range.first,
        .y_stride = e->rows,
        .vectors = w->vectors,
    };
    w->pass->kernels->bf16_product(&product);
}

void product_run(struct pass *p, enum weights_role role, const float *x, float *y, size_t rows)
{
    struct weights_block block;
    do {
        if (!pass_block(p, role, &block))
            return;
        assert(block.entry->dtype == SAFETENSORS_BF16);
        struct block_work w = {p, &block, x, y, rows};
        parallel_run(p->threads, block.rows, parallel_grain(p->threads, block.rows, ROWS_UNIT),
                     run_rows, &w);
        weights_give(p->weights, &block);
    } while (!block.last);
}
