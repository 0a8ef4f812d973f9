/*
 * Sampling: the generator's published answers, frequencies against the exact distribution (a
 * chi-square bound), every cut, ties, penalties, and that a place's number never changes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/philox.h"
#include "coordinator/sampler.h"

#define VOCAB 50
#define DRAWS 40000

static struct sampler *sampler;

static int group_setup(void **state)
{
    return sampler_open(&sampler, VOCAB);
}

static int group_teardown(void **state)
{
    sampler_close(sampler);
    return 0;
}

/* Known answers of the Random123 distribution. */
static void known_answers(void **state)
{
    static const uint32_t ones = 0xffffffffu;
    static const uint32_t key[3][2] = {{0, 0}, {ones, ones}, {0xa4093822, 0x299f31d0}};
    static const uint32_t counter[3][4] = {{0, 0, 0, 0},
                                           {ones, ones, ones, ones},
                                           {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}};
    static const uint32_t expected[3][4] = {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
                                            {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
                                            {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}};

    for (size_t i = 0; i < 3; i++) {
        uint32_t word[4];

        philox_block(key[i], counter[i], word);
        assert_memory_equal(word, expected[i], sizeof word);
    }
    assert_true(philox_uniform(1, 0, 5) == philox_uniform(1, 0, 5));
    assert_true(philox_uniform(1, 0, 5) != philox_uniform(1, 1, 5));
    assert_true(philox_uniform(1, 0, 5) != philox_uniform(2, 0, 5));
    assert_true(philox_uniform(1, 0, 5) != philox_uniform(1, 0, 6));
}

static void make_logits(float *logits)
{
    for (uint32_t i = 0; i < VOCAB; i++)
        logits[i] = (float)((i * 37 % VOCAB) * 0.15);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

/* The distribution the parameters ask for, by their definition (logits here are distinct). */
static void define(const struct sampler_params *p, const double *logits, double *ret_share)
{
    double share[VOCAB], sorted[VOCAB], best = -INFINITY, total = 0, mass = 0, least = 0;

    for (uint32_t i = 0; i < VOCAB; i++)
        best = fmax(best, logits[i]);
    for (uint32_t i = 0; i < VOCAB; i++)
        total += share[i] = exp((logits[i] - best) / p->temperature);
    memcpy(sorted, share, sizeof sorted);
    qsort(sorted, VOCAB, sizeof *sorted, by_size);
    for (uint32_t i = 0; i < VOCAB && mass < p->top_p * total; i++)
        mass += least = sorted[i];
    if (p->top_k > 0)
        least = fmax(least, sorted[p->top_k - 1]);
    least = fmax(least, p->min_p);
    total = 0;
    for (uint32_t i = 0; i < VOCAB; i++)
        total += share[i] = share[i] >= least ? share[i] : 0;
    for (uint32_t i = 0; i < VOCAB; i++)
        ret_share[i] = share[i] / total;
}

static void expect_distribution(const struct sampler_params *p)
{
    unsigned count[VOCAB] = {0};
    double adjusted[VOCAB], share[VOCAB], chi = 0;
    float logits[VOCAB];
    unsigned kinds = 0;

    make_logits(logits);
    for (uint32_t i = 0; i < VOCAB; i++)
        adjusted[i] = (double)logits[i];
    for (size_t i = 0; i < p->biases; i++)
        adjusted[p->bias[i].token] += p->bias[i].bias;
    define(p, adjusted, share);
    for (uint64_t i = 0; i < DRAWS; i++)
        count[sampler_pick(sampler, p, logits, i, NULL, 0)]++;
    for (uint32_t i = 0; i < VOCAB; i++) {
        double expected = share[i] * DRAWS;

        if (share[i] == 0)
            assert_int_equal(count[i], 0);
        else
            kinds++, chi += (count[i] - expected) * (count[i] - expected) / expected;
    }
    assert_true(chi < kinds + 5 * sqrt(2.0 * kinds) + 5);
}

static void distributions(void **state)
{
    static const struct sampler_bias bias[] = {{3, 4.0}, {7, -100.0}};
    struct sampler_params p = {.temperature = 1, .top_p = 1, .seed = 11};

    expect_distribution(&p);
    p.temperature = 2;
    expect_distribution(&p);
    p.top_p = 0.8;
    expect_distribution(&p);
    p.top_k = 7;
    expect_distribution(&p);
    p.top_p = 1;
    expect_distribution(&p);
    p.top_k = 0;
    p.min_p = 0.3;
    expect_distribution(&p);
    p.top_p = 0.5;
    p.choice = 3;
    expect_distribution(&p);
    p = (struct sampler_params){
        .temperature = 0.3, .top_p = 1, .bias = bias, .biases = 2, .seed = UINT64_MAX};
    expect_distribution(&p);
    p.top_p = 1 - 1e-12; /* reaches beyond what is sorted at first */
    p.temperature = 0.02;
    expect_distribution(&p);
    p.top_k = 49;
    expect_distribution(&p);
}

static void greedy(void **state)
{
    struct sampler_params p = {.temperature = 0, .top_p = 1};
    float logits[VOCAB] = {0};

    assert_int_equal(sampler_pick(sampler, &p, logits, 0, NULL, 0), 0);
    logits[20] = logits[30] = 1;
    assert_int_equal(sampler_pick(sampler, &p, logits, 0, NULL, 0), 20);
    p.temperature = 1;
    p.top_k = 1; /* ties by the lower id here too */
    assert_int_equal(sampler_pick(sampler, &p, logits, 9, NULL, 0), 20);
    p.top_k = 0;
    p.top_p = 0;
    assert_int_equal(sampler_pick(sampler, &p, logits, 9, NULL, 0), 20);
}

static void penalties(void **state)
{
    struct sampler_params p = {.temperature = 0, .top_p = 1, .presence = 0.5};
    const uint32_t said[] = {20, 20, 20, 30};
    float logits[VOCAB] = {0};

    logits[20] = 2;
    logits[30] = 1.7f;
    logits[40] = 1.6f;
    assert_int_equal(sampler_pick(sampler, &p, logits, 0, said, 1), 30);
    assert_int_equal(sampler_pick(sampler, &p, logits, 0, said, 4), 40);
    p.presence = 0;
    p.frequency = 0.15;
    assert_int_equal(sampler_pick(sampler, &p, logits, 0, said, 1), 20);
    assert_int_equal(sampler_pick(sampler, &p, logits, 0, said, 2), 30);
    p.frequency = -1;
    assert_int_equal(sampler_pick(sampler, &p, logits, 0, said + 3, 1), 30);
    assert_int_equal(sampler_pick(sampler, &p, logits, 0, NULL, 0),
                     20); /* nothing is left over */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(distributions),
        cmocka_unit_test(greedy),
        cmocka_unit_test(penalties),
    };

    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
