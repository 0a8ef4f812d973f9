/* Rows times vectors, every form of weights: shapes, cuts, strides, fills, ends of memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/pack12.h"
#include "tests/kernels/check.h"

enum form {
    FORM_BF16,
    FORM_MXFP4,
    FORM_F32,
    FORM_PACK12,
    FORMS,
};

static const char *const form_name[FORMS] = {"bf16", "mxfp4", "f32", "pack12"};

/* One matrix, its vectors and the two results. */
struct matrix {
    enum form form;
    struct product p;
    size_t w_bytes, x_floats, y_floats;
    float *want, *got;
};

static int multiply(const struct kernels *k, enum form form, const struct product *p)
{
    if (form == FORM_MXFP4)
        return k->mxfp4_product(p);
    (form == FORM_BF16  ? k->bf16_product
     : form == FORM_F32 ? k->f32_product
                        : k->pack12_product)(p);
    return 0;
}

static void put_bf16(struct check *c, uint8_t *at, enum check_fill fill)
{
    float value = check_value(c, fill);
    memcpy(at, (uint8_t *)&value + 2, 2);
}

static void weights_plain(struct check *c, struct matrix *m, enum check_fill fill)
{
    size_t wide = m->form == FORM_F32    ? 4 * kernels_padded(m->p.cols)
                  : m->form == FORM_BF16 ? 2 * m->p.cols
                                         : m->p.cols / 2;
    m->p.w_stride = wide + 4 * check_below(c, 3);
    m->w_bytes = m->p.w_stride * (m->p.rows - 1) + wide;
    uint8_t *w = check_take(m->w_bytes);
    for (size_t i = 0; i < m->w_bytes; i++)
        w[i] = (uint8_t)check_random(c);
    for (size_t r = 0; r < m->p.rows && m->form == FORM_BF16; r++)
        for (size_t i = 0; i < m->p.cols; i++)
            put_bf16(c, w + r * m->p.w_stride + 2 * i, fill);
    for (size_t r = 0; r < m->p.rows && m->form == FORM_F32; r++)
        check_fill_floats(c, (float *)(w + r * m->p.w_stride), wide / 4, fill);
    m->p.w = w;
}

/* Scales that suit the fill; with the normal one also the first and the last there are. */
static uint8_t scale_byte(struct check *c, enum check_fill fill)
{
    size_t r = check_below(c, 64);
    if (fill == CHECK_FILL_DENORMAL)
        return (uint8_t)(r % 4);
    if (fill == CHECK_FILL_EXTREME)
        return (uint8_t)(r < 4 ? 254 - r : 60 + check_below(c, 130));
    return (uint8_t)(r == 0 ? 0 : 118 + r % 8);
}

static void weights_mxfp4(struct check *c, struct matrix *m, enum check_fill fill)
{
    weights_plain(c, m, fill);
    m->p.scale_stride = m->p.cols / 32 + check_below(c, 3);
    size_t bytes = m->p.scale_stride * (m->p.rows - 1) + m->p.cols / 32;
    uint8_t *scale = check_take(bytes), *w = (uint8_t *)m->p.w;
    for (size_t i = 0; i < bytes; i++)
        scale[i] = scale_byte(c, fill);
    for (size_t i = 0; i < m->w_bytes && fill == CHECK_FILL_CANCEL; i++)
        w[i] = (uint8_t)((w[i] & 0x88) | 0x77); /* 6 and -6 alone */
    m->p.scale = scale;
}

/* Packed from bf16 with a wide spread, so that there are exceptions; some rows with many. */
static void weights_pack12(struct check *c, struct matrix *m, enum check_fill fill)
{
    size_t weights = m->p.rows * m->p.cols, room = 64 + 8 * (weights + 4 * m->p.cols);
    uint8_t *w = malloc(2 * weights), *block = malloc(room);
    for (size_t i = 0; i < weights; i++)
        put_bf16(c, w + 2 * i, check_below(c, 30) ? fill : (enum check_fill)(i % CHECK_FILLS));
    m->w_bytes = pack12_encode(block, room, w, m->p.rows, m->p.cols);
    uint8_t *at = check_take(m->w_bytes);
    memcpy(at, block, m->w_bytes);
    check_true(c, "a packed block is sound",
               pack12_check(at, m->w_bytes, m->p.rows, m->p.cols) == 0);
    bool kept = true;
    for (size_t r = 0; r < m->p.rows; r++) {
        pack12_row((uint16_t *)block, at, r);
        kept = kept && !memcmp(block, w + 2 * r * m->p.cols, 2 * m->p.cols);
    }
    check_true(c, "a packed row reads back as it was", kept);
    free(w);
    free(block);
    m->p.w = at;
}

static void open_matrix(struct check *c, struct matrix *m, const size_t shape[3],
                        enum check_fill fill)
{
    m->p = (struct product){.rows = shape[0], .cols = shape[1], .vectors = shape[2]};
    if (m->form == FORM_MXFP4)
        weights_mxfp4(c, m, fill);
    else if (m->form == FORM_PACK12)
        weights_pack12(c, m, fill);
    else
        weights_plain(c, m, fill);
    size_t padded = kernels_padded(m->p.cols);
    m->p.x_stride = padded + check_below(c, 3);
    m->p.y_stride = m->p.rows + check_below(c, 3);
    m->x_floats = m->p.x_stride * (m->p.vectors - 1) + padded;
    m->y_floats = m->p.y_stride * (m->p.vectors - 1) + m->p.rows;
    float *natural = check_floats(c, m->p.cols, fill), *x = check_take(4 * m->x_floats);
    for (size_t t = 0; t < m->p.vectors; t++) {
        check_fill_floats(c, natural, m->p.cols, fill);
        c->want->lane_order(x + t * m->p.x_stride, natural, m->p.cols);
    }
    check_give(natural, 4 * m->p.cols);
    m->p.x = x;
    m->want = check_take(4 * m->y_floats);
    m->got = check_take(4 * m->y_floats);
    memset(m->want, 0x55, 4 * m->y_floats);
    memset(m->got, 0x55, 4 * m->y_floats);
}

static void close_matrix(struct matrix *m)
{
    check_give((void *)m->p.w, m->w_bytes);
    if (m->form == FORM_MXFP4)
        check_give((void *)m->p.scale, m->p.scale_stride * (m->p.rows - 1) + m->p.cols / 32);
    check_give((void *)m->p.x, 4 * m->x_floats);
    check_give(m->want, 4 * m->y_floats);
    check_give(m->got, 4 * m->y_floats);
}

/* The same product in pieces: rows cut anywhere (in strips for 12 bits), vectors cut anywhere.
 */
static void multiply_cut(struct check *c, const struct matrix *m)
{
    size_t row = check_below(c, m->p.rows + 1), vector = check_below(c, m->p.vectors + 1);
    for (size_t piece = 0; piece < 4; piece++) {
        struct product p = m->p;
        size_t r = piece & 1 ? row : 0, t = piece & 2 ? vector : 0;
        p.rows = piece & 1 ? m->p.rows - row : row;
        p.vectors = piece & 2 ? m->p.vectors - vector : vector;
        if (!p.rows || !p.vectors)
            continue;
        p.first = m->form == FORM_PACK12 ? r : 0;
        p.w = (const uint8_t *)p.w + r * p.w_stride;
        p.scale = p.scale ? p.scale + r * p.scale_stride : NULL;
        p.x += t * p.x_stride;
        p.y = m->got + t * p.y_stride + r;
        multiply(c->got, m->form, &p);
    }
}

static void check_shape(struct check *c, enum form form, const size_t shape[3],
                        enum check_fill fill)
{
    char what[96];
    struct matrix m = {.form = form};
    snprintf(what, sizeof what, "%s %zu x %zu, %zu vectors, fill %d", form_name[form], shape[0],
             shape[1], shape[2], (int)fill);
    open_matrix(c, &m, shape, fill);
    m.p.y = m.want;
    int want = multiply(c->want, form, &m.p);
    m.p.y = m.got;
    int got = multiply(c->got, form, &m.p);
    check_true(c, what, want == 0 && got == 0);
    check_same(c, what, m.want, m.got, m.y_floats);
    memset(m.got, 0x55, 4 * m.y_floats);
    multiply_cut(c, &m);
    strcat(what, ", in pieces");
    check_same(c, what, m.want, m.got, m.y_floats);
    close_matrix(&m);
}

/* A NaN scale is refused wherever it is, and not looked for elsewhere. */
static void check_nan_scale(struct check *c)
{
    for (size_t rows = 1; rows < 20; rows++) {
        struct matrix m = {.form = FORM_MXFP4};
        open_matrix(c, &m, (size_t[3]){rows, 32 + 32 * check_below(c, 40), 1 + rows % 5},
                    CHECK_FILL_NORMAL);
        m.p.y = m.got;
        uint8_t *scale = (uint8_t *)m.p.scale;
        size_t groups = m.p.cols / 32, row = check_below(c, rows);
        if (m.p.scale_stride > groups && rows > 1)
            scale[groups] = 255; /* between two rows */
        check_true(c, "a gap of 255 is no scale", c->got->mxfp4_product(&m.p) == 0);
        scale[row * m.p.scale_stride + check_below(c, groups)] = 255;
        check_true(c, "a scale of 255 is refused", c->got->mxfp4_product(&m.p) == -EDOM);
        close_matrix(&m);
    }
}

static void check_lane_order(struct check *c)
{
    for (size_t n = 1; n < 200; n++) {
        size_t padded = kernels_padded(n);
        float *x = check_floats(c, n, CHECK_FILL_NORMAL);
        float *want = check_floats(c, padded, CHECK_FILL_NORMAL);
        float *got = check_floats(c, padded, CHECK_FILL_NORMAL);
        c->want->lane_order(want, x, n);
        c->got->lane_order(got, x, n);
        check_same(c, "lane order", want, got, padded);
        check_give(x, 4 * n);
        check_give(want, 4 * padded);
        check_give(got, 4 * padded);
    }
}

static void check_form(struct check *c, enum form form, size_t cols, size_t vectors)
{
    static const size_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 23, 25, 33};
    const size_t whole = form == FORM_PACK12 ? 128 : form == FORM_MXFP4 ? 32 : 1;
    for (size_t fill = 0; fill < CHECK_FILLS && cols % whole == 0; fill++) {
        size_t row = rows[check_below(c, sizeof rows / sizeof *rows)];
        if (check_turn(c))
            check_shape(c, form, (size_t[3]){row, cols, vectors}, (enum check_fill)fill);
    }
}

void check_products(struct check *c)
{
    static const size_t cols[] = {1,  2,   15,  31,  32,  33,  63,  64,   65,   96,
                                  97, 127, 128, 160, 256, 384, 512, 1000, 1536, 3584};
    static const size_t vectors[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33, 64, 65};
    check_lane_order(c);
    check_nan_scale(c);
    for (size_t form = 0; form < FORMS; form++)
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
            for (size_t t = 0; t < sizeof vectors / sizeof *vectors; t++)
                check_form(c, (enum form)form, cols[i], vectors[t]);
}
