/* MXFP4 rows times vectors for AVX-512: up to eight vectors at once, more by a panel. */
#include <errno.h>

#include "kernels/decode_vector.h"
#include "kernels/several_vector.h"
#include "kernels/variants.h"

#define BLOCK 96 /* rows whose scales are looked through together */

VECTOR_INLINE void mxfp4_avx512_decode(float *out, const struct product *p, size_t row,
                                       size_t from, size_t n)
{
    const uint8_t *w = (const uint8_t *)p->w + row * p->w_stride + from / 2;
    const uint8_t *scale = p->scale + row * p->scale_stride + from / KERNELS_GROUP;
    for (size_t g = 0; g < n / KERNELS_GROUP; g++)
        decode_vector_put(out + g * KERNELS_GROUP, lanes_mxfp4(w + 16 * g, scale[g]));
}

static void block(const struct product *p)
{
    if (p->vectors <= FEW_VECTORS)
        several_vector(p, FEW_FORM_MXFP4);
    else
        panel_vector(p, (struct panel_form){mxfp4_avx512_decode, decode_vector_fetch_mxfp4});
}

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
        block(&b);
    }
    return 0;
}
