/* bf16, fp32 and 12-bit rows times vectors for AVX2: up to three vectors in registers; many
 * vectors with 12-bit rows by a panel. */
#include "kernels/decode_vector.h"
#include "kernels/pack12_vector.h"
#include "kernels/several_vector.h"
#include "kernels/variants.h"

void dense_avx2_bf16(const struct product *p)
{
    if (p->vectors == 1)
        few_vector_rows(p, FEW_FORM_BF16, 4, 1);
    else if (p->vectors == 2)
        few_vector_rows(p, FEW_FORM_BF16, 2, 2);
    else if (p->vectors == 3)
        few_vector_rows(p, FEW_FORM_BF16, 2, 3);
    else
        several_vector(p, FEW_FORM_BF16);
}

void dense_avx2_f32(const struct product *p)
{
    if (p->vectors == 1)
        few_vector_rows(p, FEW_FORM_F32, 4, 1);
    else if (p->vectors == 2)
        few_vector_rows(p, FEW_FORM_F32, 2, 2);
    else if (p->vectors == 3)
        few_vector_rows(p, FEW_FORM_F32, 2, 3);
    else
        several_vector(p, FEW_FORM_F32);
}

void dense_avx2_pack12(const struct product *p)
{
    if (p->vectors == 1)
        pack12_vector_rows(p, 4, 1);
    else if (p->vectors == 2)
        pack12_vector_rows(p, 4, 2);
    else if (p->vectors == 3)
        pack12_vector_rows(p, 4, 3);
    else
        panel_vector(p, (struct panel_form){decode_vector_pack12, decode_vector_fetch_pack12});
}
