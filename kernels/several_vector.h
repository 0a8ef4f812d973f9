/*
 * Rows times up to SEVERAL_VECTORS vectors, for instruction sets with registers to spare: eight
 * rows are read once, as one stream, and meet the vectors a few at a time. From the second time
 * on they come from the cache.
 *
 * Eight rows times more than three vectors are more sums than registers. Those in memory cost
 * less than what fewer rows cost: the memory is idle while a processor multiplies out of a
 * panel, and is busy here.
 */
#ifndef KERNELS_SEVERAL_VECTOR_H
#define KERNELS_SEVERAL_VECTOR_H

#include "kernels/few_vector.h"

#define SEVERAL_VECTORS 32
#define SEVERAL_ROWS    8
#define SEVERAL_WIDE    6 /* vectors at a time when not all can be */

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
    case 6:
        few_vector_tile(p, form, row, R, 6);
        break;
    case 7:
        few_vector_tile(p, form, row, R, 7);
        break;
    default:
        few_vector_tile(p, form, row, R, 8);
    }
}

/* R rows times all vectors, in parts as even as can be. */
VECTOR_INLINE void several_vector_parts(const struct product *p, enum few_form form, size_t row,
                                        const int R)
{
    const size_t parts = p->vectors <= FEW_VECTORS ? 1 : (p->vectors - 1) / SEVERAL_WIDE + 1;
    for (size_t i = 0, t = 0, end; i < parts; i++, t = end) {
        struct product part = *p;
        end = p->vectors * (i + 1) / parts;
        part.x += t * p->x_stride;
        part.y += t * p->y_stride;
        part.vectors = end - t;
        several_vector_tile(&part, form, row, R);
    }
}

VECTOR_INLINE void several_vector(const struct product *p, enum few_form form)
{
    size_t row = 0;
    for (; row + SEVERAL_ROWS <= p->rows; row += SEVERAL_ROWS)
        several_vector_parts(p, form, row, SEVERAL_ROWS);
    for (; row < p->rows; row++)
        several_vector_parts(p, form, row, 1);
}

#endif
