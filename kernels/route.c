/*
 * The choice of experts for one row (model.md 3.5). Small beside the products around it, so
 * there is one version.
 *
 * Experts are ordered by (score + bias) descending, then by index ascending; each round takes
 * the first one after the last taken. No marks are needed, and nothing is sorted but the
 * result.
 */
#include <errno.h>
#include <math.h>

#include "kernels/kernels.h"

#define SUM_FLOOR 1e-20f

/* The next in the order after (value, index); experts when there is none. */
static size_t next(const struct router *r, float after, size_t index)
{
    size_t found = r->experts;
    float most = -INFINITY;
    for (size_t e = 0; e < r->experts; e++) {
        float value = r->score[e] + r->bias[e];
        int comes_after = value < after || (value == after && e > index);
        if (comes_after && value > most) {
            most = value;
            found = e;
        }
    }
    return found;
}

static void insert(uint16_t *list, size_t count, uint16_t e)
{
    size_t at = count;
    for (; at && list[at - 1] > e; at--)
        list[at] = list[at - 1];
    list[at] = e;
}

int kernels_route(const struct kernels *k, const struct router *r)
{
    float after = INFINITY, sum = 0;
    size_t index = 0;
    k->sigmoid(r->score, r->logits, r->experts);
    for (size_t i = 0; i < r->chosen; i++) {
        index = next(r, after, index);
        if (index == r->experts)
            return -EDOM;
        after = r->score[index] + r->bias[index];
        insert(r->expert, i, (uint16_t)index);
    }
    for (size_t i = 0; i < r->chosen; i++)
        sum += r->score[r->expert[i]];
    for (size_t i = 0; i < r->chosen; i++)
        r->weight[i] = r->score[r->expert[i]] / (sum + SUM_FLOOR) * r->scaling;
    return 0;
}
