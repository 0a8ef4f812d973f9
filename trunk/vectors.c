/* Small tensors: see the header. */
#include "trunk/vectors.h"

#include <assert.h>
#include <string.h>

void vectors_widen(float *out, const uint8_t *bf16, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, bf16 + 2 * i, sizeof half);
        uint32_t bits = (uint32_t)half << 16;
        memcpy(&out[i], &bits, sizeof bits);
    }
}

float *vectors_take(struct pass *p, enum weights_role role, size_t n)
{
    float *out = pass_floats(p, n);
    struct weights_block b;
    do {
        if (!pass_block(p, role, &b))
            return out;
        size_t cols = b.entry->cols, first = b.row * cols, count = b.rows * cols;
        assert((size_t)b.entry->rows * cols == n);
        if (b.entry->dtype == SAFETENSORS_F32)
            memcpy(out + first, b.data, count * sizeof *out);
        else
            vectors_widen(out + first, b.data, count);
        weights_give(p->weights, &b);
    } while (!b.last);
    return out;
}

float *vectors_query(struct pass *p, enum weights_role norm, enum weights_role projection)
{
    size_t n = p->shape->hidden;
    float *query = vectors_take(p, norm, n);
    const float *weight = vectors_take(p, projection, n);
    for (size_t i = 0; !p->error && i < n; i++)
        query[i] = query[i] * weight[i];
    return query;
}
