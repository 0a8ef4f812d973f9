/* Attention residuals: see the header. After a push the last source is not there yet; `sources`
 * counts it already, and `pushed` says so until something is added. */
#include "trunk/residual.h"

#include <assert.h>
#include <string.h>

#include "trunk/parallel.h"
#include "trunk/rowwise.h"

struct mix_work {
    const struct pass *pass;
    const float *query;
    float *out;
};

static void mix_rows(void *context, struct parallel_range range)
{
    const struct mix_work *w = context;
    const struct pass *p = w->pass;
    size_t n = p->shape->hidden;
    for (size_t t = range.first; t < range.end; t++) {
        const float *source[SHAPE_SOURCES];
        for (uint32_t i = 0; i < p->sources; i++)
            source[i] = pass_source(p, i) + t * n;
        p->kernels->attention_residual(w->out + t * n, source, p->sources, w->query, n,
                                       p->shape->norm_eps);
    }
}

void residual_mix(struct pass *p, const float *query, float *out)
{
    if (p->error)
        return;
    assert(!p->pushed);
    struct mix_work w = {p, query, out};
    if (p->sources == 1)
        memcpy(out, pass_running(p), p->batch.rows * p->shape->hidden * sizeof *out);
    else
        parallel_run(p->threads, p->batch.rows, 1, mix_rows, &w);
}

void residual_push(struct pass *p)
{
    p->sources++;
    p->pushed = true;
}

void residual_add(struct pass *p, const float *x)
{
    if (p->error)
        return;
    if (p->pushed)
        memcpy(pass_running(p), x, p->batch.rows * p->shape->hidden * sizeof *x);
    else
        rowwise_add(p, pass_running(p), x, p->batch.rows, p->shape->hidden);
    p->pushed = false;
}
