/* MXFP4 rows times vectors for AVX-512. */
#include <errno.h>

#include "kernels/several_vector.h"
#include "kernels/variants.h"

#define BLOCK 96 /* rows whose scales are looked through together */

int mxfp4_avx512_product(const struct product *p)
{
    for (size_t row = 0; row < p->rows; row += BLOCK) {
        struct product b = *p;
        b.rows = p->rows - row < BLOCK ? p->rows - row : BLOCK;
        if (scales_bad(p, row, b.rows))
            return -EDOM;
        b.w = (const uint8_t *)p->w + row * p->w_stride;
        b.scale = p->scale + row * p->scale_stride;
        b.y = p->y + row;
        several_vector(&b, FEW_FORM_MXFP4);
    }
    return 0;
}
