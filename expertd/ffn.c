/*
 * Rows are taken FFN_ROWS at a time, so that the scratch of a worker is small whatever the
 * batch; a lone row and a run of consecutive rows are used where they lie, others are gathered.
 */
#include "expertd/ffn.h"

#include <string.h>

static size_t aligned(size_t floats)
{
    return (floats + 15) / 16 * 16;
}

size_t ffn_scratch_bytes(const struct shape *s)
{
    size_t row = kernels_padded(s->latent) + 2 * kernels_padded(s->band) + aligned(s->latent);
    return FFN_ROWS * row * sizeof(float);
}

void ffn_init(struct ffn *f, const struct kernels *k, const struct shape *s, void *scratch)
{
    f->kernels = k;
    f->shape = s;
    f->x = scratch;
    f->gate = f->x + FFN_ROWS * kernels_padded(s->latent);
    f->up = f->gate + FFN_ROWS * kernels_padded(s->band);
    f->d = f->up + FFN_ROWS * kernels_padded(s->band);
}

static const float *gather(struct ffn *f, const float *z, const struct ffn_pair *pair,
                           size_t pairs)
{
    size_t width = kernels_padded(f->shape->latent);
    if (pair[pairs - 1].row - pair[0].row == pairs - 1)
        return z + pair[0].row * width;
    for (size_t i = 0; i < pairs; i++)
        memcpy(f->x + i * width, z + pair[i].row * width, width * sizeof *z);
    return f->x;
}

/* y = the tile's w1 or w3 times the rows. */
static int rise(struct ffn *f, const uint8_t *w, const uint8_t *scale, const float *x, float *y,
                size_t rows)
{
    const struct shape *s = f->shape;
    return f->kernels->mxfp4_product(&(struct product){
        .w = w,
        .w_stride = s->latent / 2,
        .scale = scale,
        .scale_stride = s->latent / KERNELS_GROUP,
        .rows = s->band,
        .cols = s->latent,
        .x = x,
        .x_stride = kernels_padded(s->latent),
        .y = y,
        .y_stride = kernels_padded(s->band),
        .vectors = rows,
    });
}

static int fall(struct ffn *f, const struct region_tile *t, const float *h, size_t rows)
{
    const struct shape *s = f->shape;
    return f->kernels->mxfp4_product(&(struct product){
        .w = t->w2,
        .w_stride = t->w2_stride,
        .scale = t->s2,
        .scale_stride = t->s2_stride,
        .rows = s->latent,
        .cols = s->band,
        .x = h,
        .x_stride = kernels_padded(s->band),
        .y = f->d,
        .y_stride = aligned(s->latent),
        .vectors = rows,
    });
}

static int some_rows(struct ffn *f, const struct region_tile *t, const float *z,
                     const struct ffn_pair *pair, size_t pairs, int64_t *sum)
{
    const struct shape *s = f->shape;
    size_t width = kernels_padded(s->band);
    const float *x = gather(f, z, pair, pairs);

    int r = rise(f, t->w1, t->s1, x, f->gate, pairs);
    if (!r)
        r = rise(f, t->w3, t->s3, x, f->up, pairs);
    if (r)
        return r;
    for (size_t i = 0; i < pairs; i++) {
        float *gate = f->gate + i * width, *up = f->up + i * width;
        f->kernels->situ_glu(gate, gate, up, s->band, s->situ);
        f->kernels->lane_order(up, gate, s->band);
    }
    r = fall(f, t, f->up, pairs);
    for (size_t i = 0; !r && i < pairs; i++)
        r = f->kernels->accumulate(sum + (size_t)pair[i].row * s->latent,
                                   f->d + i * aligned(s->latent), pair[i].weight, s->latent);
    return r;
}

int ffn_tile(struct ffn *f, const struct region_tile *t, const float *z,
             const struct ffn_pair *pair, size_t pairs, int64_t *sum)
{
    int r = 0;
    for (size_t at = 0; !r && at < pairs; at += FFN_ROWS) {
        size_t n = pairs - at < FFN_ROWS ? pairs - at : FFN_ROWS;
        r = some_rows(f, t, z, pair + at, n, sum);
    }
    return r;
}
