/*
 * Sampling, see the header.
 *
 * A full sort of 163,840 candidates is avoided: only those within SAMPLER_REACH of the best are
 * sorted at first, and all of them when that did not reach the mass that top_p asks for; so the
 * cut is the same as with a full sort.
 */
#include "coordinator/sampler.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "coordinator/philox.h"

#define SAMPLER_REACH 24.0 /* e^-24 of the best one's probability */

struct candidate {
    double weight; /* exp((logit - best) / temperature) */
    uint32_t token;
};

struct sampler {
    uint32_t vocab;
    double *logit;
    uint16_t *count; /* of each token among those said; zero between calls */
    struct candidate *candidate;
};

int sampler_open(struct sampler **ret_sampler, uint32_t vocab)
{
    struct sampler *s = calloc(1, sizeof *s);

    if (s == NULL)
        return -ENOMEM;
    s->vocab = vocab;
    s->logit = calloc(vocab, sizeof *s->logit);
    s->count = calloc(vocab, sizeof *s->count);
    s->candidate = calloc(vocab, sizeof *s->candidate);
    if (s->logit == NULL || s->count == NULL || s->candidate == NULL) {
        sampler_close(s);
        return -ENOMEM;
    }
    *ret_sampler = s;
    return 0;
}

void sampler_close(struct sampler *s)
{
    if (s == NULL)
        return;
    free(s->logit);
    free(s->count);
    free(s->candidate);
    free(s);
}

/* Each distinct token said loses presence once and frequency per time. */
static void penalize(struct sampler *s, const struct sampler_params *p, const uint32_t *said,
                     size_t count)
{
    if (p->presence == 0 && p->frequency == 0)
        return;
    for (size_t i = 0; i < count; i++)
        if (s->count[said[i]] < UINT16_MAX)
            s->count[said[i]]++;
    for (size_t i = 0; i < count; i++) {
        uint32_t t = said[i];

        if (s->count[t] == 0)
            continue;
        s->logit[t] -= p->presence + p->frequency * s->count[t];
        s->count[t] = 0;
    }
}

static void adjust(struct sampler *s, const struct sampler_params *p, const float *logits,
                   const uint32_t *said, size_t count)
{
    for (uint32_t i = 0; i < s->vocab; i++)
        s->logit[i] = (double)logits[i];
    for (size_t i = 0; i < p->biases; i++)
        s->logit[p->bias[i].token] += p->bias[i].bias;
    penalize(s, p, said, count);
}

static uint32_t largest(const struct sampler *s)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < s->vocab; i++)
        if (s->logit[i] > s->logit[best])
            best = i;
    return best;
}

static int by_weight(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->token < y->token ? -1 : x->token > y->token;
}

/* Candidates of at least `floor` weight, in id order; *ret_total is the weight of all. */
static size_t gather(struct sampler *s, double best, double temperature, double floor,
                     double *ret_total)
{
    double total = 0;
    size_t n = 0;

    for (uint32_t i = 0; i < s->vocab; i++) {
        double w = exp((s->logit[i] - best) / temperature);

        total += w;
        if (w >= floor && w > 0)
            s->candidate[n++] = (struct candidate){w, i};
    }
    *ret_total = total;
    return n;
}

/* The shortest prefix with the mass; false when the candidates do not reach it. */
static bool nucleus(const struct sampler *s, size_t *n, double mass)
{
    double sum = 0;

    for (size_t i = 0; i < *n; i++) {
        sum += s->candidate[i].weight;
        if (sum >= mass) {
            *n = i + 1;
            return true;
        }
    }
    return false;
}

/* Applies the cuts; gives how many candidates are left. */
static size_t cut(struct sampler *s, const struct sampler_params *p, double best)
{
    bool sorted = p->top_p < 1 || p->top_k > 0;
    double floor = sorted ? exp(-SAMPLER_REACH) : 0;
    double total;
    size_t n = gather(s, best, p->temperature, fmax(floor, p->min_p), &total);

    if (!sorted)
        return n;
    qsort(s->candidate, n, sizeof *s->candidate, by_weight);
    if ((p->top_k > 0 && n < p->top_k) || (p->top_p < 1 && !nucleus(s, &n, p->top_p * total))) {
        n = gather(s, best, p->temperature, 0, &total);
        qsort(s->candidate, n, sizeof *s->candidate, by_weight);
        nucleus(s, &n, p->top_p * total);
        while (n > 1 && s->candidate[n - 1].weight < p->min_p)
            n--;
    }
    return p->top_k > 0 && p->top_k < n ? p->top_k : n;
}

uint32_t sampler_pick(struct sampler *s, const struct sampler_params *p, const float *logits,
                      uint64_t position, const uint32_t *said, size_t said_count)
{
    double total = 0, point;
    uint32_t best;
    size_t n;

    adjust(s, p, logits, said, said_count);
    best = largest(s);
    if (p->temperature == 0)
        return best;
    n = cut(s, p, s->logit[best]);
    for (size_t i = 0; i < n; i++)
        total += s->candidate[i].weight;
    point = philox_uniform(p->seed, p->choice, position) * total;
    for (size_t i = 0; i < n; i++) {
        point -= s->candidate[i].weight;
        if (point < 0)
            return s->candidate[i].token;
    }
    return s->candidate[n - 1].token;
}
