/* bf16, fp32 and 12-bit rows times vectors for AVX-512; many vectors with 12-bit rows by a
 * panel. */
#include "kernels/decode_vector.h"
#include "kernels/pack12_vector.h"
#include "kernels/several_vector.h"
#include "kernels/variants.h"

void dense_avx512_bf16(const struct product *p)
{
    if (p->vectors == 1)
        few_vector_rows(p, FEW_FORM_BF16, 12, 1);
    else
        several_vector(p, FEW_FORM_BF16);
}

void dense_avx512_f32(const struct product *p)
{
    if (p->vectors == 1)
        few_vector_rows(p, FEW_FORM_F32, 12, 1);
    else
        several_vector(p, FEW_FORM_F32);
}

void dense_avx512_pack12(const struct product *p)
{
    switch (p->vectors) {
    case 1:
        pack12_vector_rows(p, 4, 1);
        break;
    case 2:
        pack12_vector_rows(p, 4, 2);
        break;
    case 3:
        pack12_vector_rows(p, 4, 3);
        break;
    case 4:
        pack12_vector_rows(p, 4, 4);
        break;
    case 5:
        pack12_vector_rows(p, 4, 5);
        break;
    case 6:
        pack12_vector_rows(p, 4, 6);
        break;
    default:
        panel_vector(p, (struct panel_form){decode_vector_pack12, decode_vector_fetch_pack12});
    }
}
