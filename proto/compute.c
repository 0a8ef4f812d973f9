/* The payload of Compute: see the header. Sizes are checked before any pointer is made. */
#include "proto/compute.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define ROWS_MOST 65536

static size_t z_bytes(const struct shape *s, uint32_t rows)
{
    return (size_t)rows * s->latent * sizeof(float);
}

static size_t experts_bytes(size_t total)
{
    return (total * sizeof(uint16_t) + 3) / 4 * 4;
}

size_t compute_bytes(const struct shape *s, uint32_t rows, size_t total)
{
    return z_bytes(s, rows) + experts_bytes(total) + total * sizeof(float);
}

/* Sum of the counts, each within what a row may choose; SIZE_MAX when one is not. */
static size_t sum_counts(const Kapok__Compute *h, const struct shape *s)
{
    size_t total = 0;
    for (size_t t = 0; t < h->n_counts; t++) {
        if (h->counts[t] > s->experts)
            return SIZE_MAX;
        total += h->counts[t];
    }
    return total;
}

static const char *check_header(const Kapok__Compute *h, const struct shape *s)
{
    if (h->layer >= s->layers || !shape_is_moe(s, h->layer))
        return "Compute: the layer has no experts";
    if (!h->bands || (s->bands < 64 && h->bands >> s->bands))
        return "Compute: bands that the shape does not have";
    if (!h->rows || h->rows > ROWS_MOST || h->n_counts != h->rows)
        return "Compute: the number of rows and of counts differ, or there are none";
    return NULL;
}

static const char *check_experts(const struct compute *c, const struct shape *s)
{
    size_t at = 0;
    for (uint32_t t = 0; t < c->rows; t++)
        for (uint32_t i = 0; i < c->counts[t]; i++, at++)
            if (c->experts[at] >= s->experts || (i && c->experts[at] <= c->experts[at - 1]))
                return "Compute: a row's experts do not increase, or do not exist";
    return NULL;
}

static const char *check_numbers(const struct compute *c, const struct shape *s)
{
    for (size_t i = 0; i < (size_t)c->rows * s->latent; i++)
        if (!isfinite(c->z[i]))
            return "Compute: an input is not finite";
    for (size_t i = 0; i < c->total; i++)
        if (!isfinite(c->weights[i]))
            return "Compute: a weight is not finite";
    return NULL;
}

int compute_open(struct compute *c, const struct msg *m, const struct shape *s,
                 const char **ret_why)
{
    const Kapok__Compute *h = m->request->compute;
    const char *why = check_header(h, s);
    size_t total = why ? 0 : sum_counts(h, s);
    if (!why && (total == SIZE_MAX || m->payload_bytes != compute_bytes(s, h->rows, total)))
        why = "Compute: the payload's size is not what the header says";
    if (!why) {
        const uint8_t *experts = m->payload + z_bytes(s, h->rows);
        struct compute made = {
            .layer = h->layer,
            .rows = h->rows,
            .bands = h->bands,
            .z = (const float *)m->payload,
            .counts = h->counts,
            .experts = (const uint16_t *)experts,
            .weights = (const float *)(experts + experts_bytes(total)),
            .total = total,
        };
        why = check_experts(&made, s);
        if (!why)
            why = check_numbers(&made, s);
        if (!why) {
            *c = made;
            return 0;
        }
    }
    *ret_why = why;
    return -EBADMSG;
}

void compute_write(const struct compute *c, const struct shape *s, uint8_t *out)
{
    size_t z = z_bytes(s, c->rows), experts = experts_bytes(c->total);
    memcpy(out, c->z, z);
    memset(out + z, 0, experts);
    memcpy(out + z, c->experts, c->total * sizeof *c->experts);
    memcpy(out + z + experts, c->weights, c->total * sizeof *c->weights);
}
