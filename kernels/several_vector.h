/*
 * Rows times any number of vectors: eight rows are read as one stream and meet the vectors a
 * few at a time. From the second time on they come from the second cache, where a batch of
 * vectors stays for a block of rows; the next batch finds the block in the third.
 *
 * Eight rows times several vectors can be more sums than registers. Those in memory cost less
 * than fewer rows at a time would, for then the memory idles while the processor multiplies.
 */
#ifndef KERNELS_SEVERAL_VECTOR_H
#define KERNELS_SEVERAL_VECTOR_H

#include "kernels/few_vector.h"

#define SEVERAL_ROWS  8
#define SEVERAL_BLOCK 64 /* rows */
#define SEVERAL_BATCH 16 /* vectors */
#define SEVERAL_WIDE  4  /* vectors at a time when there are more than FEW_VECTORS */

/* R rows from `row` on times all vectors, at most FEW_VECTORS. */
VECTOR_INLINE void several_vector_tile(const struct product *p, enum few_form form, size_t row,
                                       const int R)
{
    switch (p->vectors) {
    case 1:
        few_vector_tile(p, form, row, R, 1);
        break;
    case 2:
        few_vector_tile(p, form, row, R, 2);
        break;
    case 3:
        few_vector_tile(p, form, row, R, 3);
        break;
    case 4:
        few_vector_tile(p, form, row, R, 4);
        break;
    case 5:
        few_vector_tile(p, form, row, R, 5);
        break;
    default:
        few_vector_tile(p, form, row, R, 6);
    }
}

/* Vectors of part i of n, as even as can be. */
static inline struct product several_vector_part(const struct product *p, size_t i, size_t n)
{
    const size_t t = p->vectors * i / n;
    struct product part = *p;
    part.x += t * p->x_stride;
    part.y += t * p->y_stride;
    part.vectors = p->vectors * (i + 1) / n - t;
    return part;
}

/* R rows times all vectors, a few at a time. */
VECTOR_INLINE void several_vector_parts(const struct product *p, enum few_form form, size_t row,
                                        const int R)
{
    const size_t parts = p->vectors <= FEW_VECTORS ? 1 : (p->vectors - 1) / SEVERAL_WIDE + 1;
    for (size_t i = 0; i < parts; i++) {
        struct product part = several_vector_part(p, i, parts);
        several_vector_tile(&part, form, row, R);
    }
}

VECTOR_INLINE void several_vector_block(const struct product *p, enum few_form form, size_t row,
                                        size_t end)
{
    for (; row + SEVERAL_ROWS <= end; row += SEVERAL_ROWS)
        several_vector_parts(p, form, row, SEVERAL_ROWS);
    for (; row < end; row++)
        several_vector_parts(p, form, row, 1);
}

VECTOR_INLINE void several_vector(const struct product *p, enum few_form form)
{
    const size_t batches = (p->vectors - 1) / SEVERAL_BATCH + 1;
    for (size_t row = 0; row < p->rows; row += SEVERAL_BLOCK)
        for (size_t i = 0; i < batches; i++) {
            struct product batch = several_vector_part(p, i, batches);
            several_vector_block(&batch, form, row,
                                 p->rows - row < SEVERAL_BLOCK ? p->rows : row + SEVERAL_BLOCK);
        }
}

#endif
