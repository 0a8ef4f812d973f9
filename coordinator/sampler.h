/*
 * Choosing a token from logits, in double.
 *
 * The order is: logit_bias, then presence and frequency penalties over the tokens generated so
 * far, then temperature, top_k, top_p, min_p, then one uniform number (philox.h) keyed by seed,
 * choice and position. Temperature 0 takes the largest, ties to the lower id. Nucleus rule:
 * sorted by probability (ties by id), the shortest prefix whose mass reaches top_p. min_p keeps
 * tokens of at least min_p times the best one's probability. All cuts look at the distribution
 * after temperature; what is left is renormalised.
 *
 * The result is a function of the logits, the parameters, the position and the tokens generated
 * before: never of what else runs.
 */
#ifndef COORDINATOR_SAMPLER_H
#define COORDINATOR_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#define SAMPLER_BIASES 1024

struct sampler_bias {
    uint32_t token;
    double bias;
};

struct sampler_params {
    double temperature; /* 0: greedy */
    double top_p;       /* 1: off */
    double min_p;       /* 0: off */
    uint32_t top_k;     /* 0: off */
    double presence, frequency;
    uint64_t seed;
    uint32_t choice;                 /* index among the choices of one request */
    const struct sampler_bias *bias; /* distinct tokens, each below the vocabulary */
    size_t biases;
};

struct sampler;

int sampler_open(struct sampler **ret_sampler, uint32_t vocab); /* scratch for one thread */
void sampler_close(struct sampler *s);

/* `said`: the tokens generated before this position (for the penalties). */
uint32_t sampler_pick(struct sampler *s, const struct sampler_params *p, const float *logits,
                      uint64_t position, const uint32_t *said, size_t said_count);

#endif
