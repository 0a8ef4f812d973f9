/* Weighted sums in fixed point, a vector at a time: fixed_c.c has the definition. */
#ifndef KERNELS_FIXED_VECTOR_H
#define KERNELS_FIXED_VECTOR_H

#include "kernels/variants.h"
#include "kernels/vector.h"

/* Products that leave the range in which a register can be rounded at once go to the
 * definition; so do those it refuses. */
static inline int fixed_vector_accumulate(int64_t *sum, const float *d, float weight, size_t n)
{
    const size_t step = VECTOR_LANES / 2;
    const vector_half factor = vector_half_all((double)weight), one = vector_half_all(0x1p40);
    size_t i = 0;
    for (; i + step <= n; i += step) {
        vector_half p = vector_half_mul(vector_half_mul(factor, vector_half_load(d + i)), one);
        if (vector_half_below(p, 0x1p51)) {
            vector_half_count(sum + i, p);
            continue;
        }
        int e = fixed_c_accumulate(sum + i, d + i, weight, step);
        if (e)
            return e;
    }
    return i < n ? fixed_c_accumulate(sum + i, d + i, weight, n - i) : 0;
}

#endif
