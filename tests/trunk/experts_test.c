/*
 * Asking expertds: every tile is asked of exactly one holder and summed exactly once, whoever
 * holds what, dies, hangs or fails. Run with the folder of a small checkpoint.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "tests/trunk/fake_expertd.h"
#include "trunk/experts.h"

#define ROWS  50
#define LAYER 2

static struct checkpoint checkpoint;

struct asker {
    struct memory memory;
    struct links *links;
    struct coverage coverage;
    struct experts *experts;
    struct gather gather;
    struct fake fake[4];
    size_t fakes;
    atomic_bool unwanted;
    struct routing routing;
    uint16_t *expert;
    float *weight, *z;
    int64_t *sum, *expected;
    char why[320];
};

static bool wanted(void *context)
{
    return !((struct asker *)context)->unwanted;
}

static void make_rows(struct asker *a)
{
    const struct shape *s = &checkpoint.shape;
    size_t all = (size_t)ROWS * s->chosen;
    a->expert = calloc(all, sizeof *a->expert);
    a->weight = calloc(all, sizeof *a->weight);
    a->z = calloc((size_t)ROWS * s->latent, sizeof *a->z);
    a->sum = calloc((size_t)ROWS * s->latent, sizeof *a->sum);
    a->expected = calloc((size_t)ROWS * s->latent, sizeof *a->expected);
    for (size_t i = 0; i < (size_t)ROWS * s->latent; i++)
        a->z[i] = (float)(i * 7919 % 251) / 16 - 8;
    for (size_t t = 0; t < ROWS; t++)
        for (size_t i = 0; i < s->chosen; i++) {
            size_t at = t * s->chosen + i;
            a->expert[at] = (uint16_t)(i * (s->experts / s->chosen) +
                                       (t * 5 + i) % (s->experts / s->chosen));
            a->weight[at] = (float)(1 + at % 13) / 16;
            for (size_t j = 0; j < s->latent; j++)
                a->expected[t * s->latent + j] +=
                    fake_sum(s, a->expert[at], a->z[t * s->latent + j], a->weight[at]);
        }
    a->routing = (struct routing){LAYER, ROWS, s->chosen, a->expert, a->weight};
}

/* `bands`: one text for each fake, NULL in it: it is not started yet but known. */
static struct asker *asker_open(const char *const *bands, size_t fakes, double deadline)
{
    static const uint32_t layers[2] = {1, 4};
    struct asker *a = calloc(1, sizeof *a);
    struct problems p;
    problems_init(&p);
    memory_init(&a->memory, 0);
    a->fakes = fakes;
    struct links_options lo = {.role = "trunk", .payload_most = 1 << 24};
    memcpy(lo.model, checkpoint.digest, sizeof lo.model);
    assert_int_equal(links_open(&a->links, &lo), 0);
    assert_int_equal(coverage_open(&a->coverage, &checkpoint.shape, layers, a->links), 0);
    for (size_t i = 0; i < fakes; i++) {
        struct link *l;
        fake_start(&a->fake[i], &checkpoint, bands[i]);
        assert_int_equal(links_add(a->links, a->fake[i].address, &l, &p), 0);
        assert_int_equal(coverage_add_peer(&a->coverage, l), 0);
    }
    struct experts_options xo = {&checkpoint.shape, &a->coverage, ROWS, deadline, wanted, a};
    assert_int_equal(experts_open(&a->experts, &xo, &a->memory), 0);
    a->gather = experts_gather(a->experts);
    assert_int_equal(links_start(a->links), 0);
    make_rows(a);
    return a;
}

static void asker_close(struct asker *a)
{
    experts_close(a->experts);
    links_close(a->links);
    coverage_close(&a->coverage);
    for (size_t i = 0; i < a->fakes; i++)
        fake_stop(&a->fake[i]);
    memory_fini(&a->memory);
    free(a->expert);
    free(a->weight);
    free(a->z);
    free(a->sum);
    free(a->expected);
    free(a);
}

static void assert_finish(struct asker *a)
{
    if (a->gather.finish(a->gather.context, a->sum, a->why, sizeof a->why))
        fail_msg("%s", a->why);
    assert_memory_equal(a->sum, a->expected,
                        (size_t)ROWS * checkpoint.shape.latent * sizeof *a->sum);
}

static int run_layer(struct asker *a)
{
    a->gather.hint(a->gather.context, &a->routing);
    a->gather.begin(a->gather.context, &a->routing, a->z);
    return a->gather.finish(a->gather.context, a->sum, a->why, sizeof a->why);
}

static void assert_layer(struct asker *a)
{
    a->gather.hint(a->gather.context, &a->routing);
    a->gather.begin(a->gather.context, &a->routing, a->z);
    assert_finish(a);
}

static unsigned computes(const struct asker *a)
{
    unsigned n = 0;
    for (size_t i = 0; i < a->fakes; i++)
        n += a->fake[i].computes;
    return n;
}

static void sleep_a_little(double seconds)
{
    nanosleep(&(struct timespec){(time_t)seconds, (long)((seconds - (int)seconds) * 1e9)},
              NULL);
}

/* Replicas too: the tiles are covered before all of them have answered. */
static void await_all(struct asker *a)
{
    struct coverage_summary s;
    for (size_t up = 0, tries = 0; up < a->fakes && tries < 3000; tries++) {
        coverage_look(&a->coverage, &s);
        up = 0;
        for (size_t i = 0; i < a->fakes; i++) {
            struct coverage_peer peer;
            coverage_peer(&a->coverage, i, &peer);
            up += peer.up;
        }
        sleep_a_little(0.01);
    }
    assert_int_equal(experts_await(a->experts), 0);
}

/* ---- tests ------------------------------------------------------------------------------- */

static void every_tile_is_summed_once(void **state)
{
    static const char *const one[] = {NULL}, *const split[] = {"0-5", "6-11"},
                             *const uneven[] = {"0,7", "1-5", "6,8-11"},
                             *const overlapping[] = {"0-7", "4-11", NULL};
    const struct {
        const char *const *bands;
        size_t fakes;
    } layout[] = {{one, 1}, {split, 2}, {uneven, 3}, {overlapping, 3}};
    for (size_t i = 0; i < 4; i++) {
        struct asker *a = asker_open(layout[i].bands, layout[i].fakes, 60);
        await_all(a);
        for (int again = 0; again < 3; again++)
            assert_layer(a);
        for (size_t j = 0; j < layout[i].fakes; j++)
            assert_true(a->fake[j].computes > 0); /* replicas share the work */
        asker_close(a);
    }
}

static void one_request_for_a_peer_and_a_layer(void **state)
{
    static const char *const split[] = {"0-5", "6-11"};
    struct asker *a = asker_open(split, 2, 60);
    assert_int_equal(experts_await(a->experts), 0);
    assert_layer(a);
    assert_int_equal(a->fake[0].computes, 1);
    assert_int_equal(a->fake[1].computes, 1);
    asker_close(a);
}

static void rows_are_cut_to_what_peers_take(void **state)
{
    static const char *const split[] = {"0-5", "6-11"};
    struct asker *a = asker_open(split, 2, 60);
    fake_stop(&a->fake[1]);
    a->fake[1].rows_most = 3; /* so many chunks that one wave does not do */
    fake_start(&a->fake[1], &checkpoint, split[1]);
    assert_int_equal(experts_await(a->experts), 0);
    assert_layer(a);
    assert_int_equal(a->fake[1].rows_seen, 3);
    assert_true(computes(a) >= 2 * ((ROWS + 2) / 3));
    asker_close(a);
}

static void a_peer_that_restarts_is_asked_again(void **state)
{
    static const char *const split[] = {"0-5", "6-11"};
    struct asker *a = asker_open(split, 2, 60);
    assert_int_equal(experts_await(a->experts), 0);
    a->fake[1].mute = true;
    a->gather.begin(a->gather.context, &a->routing, a->z);
    while (!a->fake[1].computes)
        sleep_a_little(0.01);
    fake_stop(&a->fake[1]);
    fake_start(&a->fake[1], &checkpoint, split[1]);
    assert_finish(a);
    struct experts_counters c;
    experts_counters(a->experts, &c);
    assert_true(c.resent > 0);
    asker_close(a);
}

static void a_replica_takes_over(void **state)
{
    static const char *const twice[] = {NULL, NULL};
    static const int errors[] = {-EIO, -ENOENT};
    struct asker *a = asker_open(twice, 2, 60);
    assert_int_equal(experts_await(a->experts), 0);
    for (size_t i = 0; i < 2; i++) {
        a->fake[0].error = errors[i];
        assert_layer(a);
    }
    a->fake[0].error = 0;
    a->fake[0].mute = true;
    a->gather.begin(a->gather.context, &a->routing, a->z);
    while (!a->fake[0].computes)
        sleep_a_little(0.01);
    fake_stop(&a->fake[0]);
    assert_finish(a);
    asker_close(a);
}

static void a_replica_takes_over_from_one_that_hangs(void **state)
{
    static const char *const twice[] = {NULL, NULL};
    struct asker *a = asker_open(twice, 2, 60);
    await_all(a);
    a->fake[1].deaf = true;
    assert_layer(a); /* after LINK_SILENCE, long before the deadline */
    asker_close(a);
}

static void past_the_deadline_it_is_asked_again(void **state)
{
    static const char *const all[] = {NULL};
    struct asker *a = asker_open(all, 1, 0.5);
    assert_int_equal(experts_await(a->experts), 0);
    a->fake[0].mute = true;
    a->gather.begin(a->gather.context, &a->routing, a->z);
    while (!a->fake[0].computes)
        sleep_a_little(0.01);
    a->fake[0].mute = false;
    assert_finish(a);
    assert_int_equal(a->fake[0].computes, 2);
    asker_close(a);
}

static void errors_of_the_model_end_the_layer(void **state)
{
    static const char *const split[] = {"0-5", "6-11"};
    static const int errors[] = {-EDOM, -ERANGE, -EIO, -ENOENT};
    struct asker *a = asker_open(split, 2, 60);
    char expected[200];
    assert_int_equal(experts_await(a->experts), 0);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        a->fake[1].error = errors[i];
        /* What one expertd alone holds and has not is an error of its disk to the others. */
        assert_int_equal(run_layer(a), errors[i] == -ENOENT ? -EIO : errors[i]);
        snprintf(expected, sizeof expected, "expertd %s: layer %d: made up", a->fake[1].address,
                 LAYER);
        assert_string_equal(a->why, expected);
        a->fake[1].error = 0;
        assert_layer(a); /* nothing is left of it */
    }
    asker_close(a);
}

static void what_is_not_wanted_ends_at_once(void **state)
{
    static const char *const split[] = {"0-5", "6-11"};
    struct asker *a = asker_open(split, 2, 60);
    assert_int_equal(experts_await(a->experts), 0);
    a->fake[0].mute = true;
    a->unwanted = true;
    assert_int_equal(run_layer(a), -ECANCELED);
    a->unwanted = false;
    a->fake[0].mute = false;
    assert_layer(a);
    a->gather.begin(a->gather.context, &a->routing, a->z);
    a->gather.drop(a->gather.context);
    assert_layer(a);
    asker_close(a);
}

static void missing_tiles_are_named(void **state)
{
    static const char *const some[] = {"0-3", "5-11"};
    struct asker *a = asker_open(some, 2, 60);
    struct coverage_summary s;
    for (int i = 0; i < 500; i++) {
        coverage_look(&a->coverage, &s);
        if (s.covered == s.needed / 12 * 11)
            break;
        sleep_a_little(0.01);
    }
    assert_int_equal(s.covered, s.needed / 12 * 11);
    assert_string_equal(s.missing,
                        "layer 1 expert 0 band 4 is held by no expertd that answers");
    a->unwanted = true;
    assert_int_equal(experts_await(a->experts), -ECANCELED);
    a->unwanted = false;
    fake_stop(&a->fake[0]);
    fake_start(&a->fake[0], &checkpoint, "0-4");
    assert_int_equal(experts_await(a->experts), 0);
    assert_layer(a);
    asker_close(a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tile_is_summed_once),
        cmocka_unit_test(one_request_for_a_peer_and_a_layer),
        cmocka_unit_test(rows_are_cut_to_what_peers_take),
        cmocka_unit_test(a_peer_that_restarts_is_asked_again),
        cmocka_unit_test(a_replica_takes_over),
        cmocka_unit_test(a_replica_takes_over_from_one_that_hangs),
        cmocka_unit_test(past_the_deadline_it_is_asked_again),
        cmocka_unit_test(errors_of_the_model_end_the_layer),
        cmocka_unit_test(what_is_not_wanted_ends_at_once),
        cmocka_unit_test(missing_tiles_are_named),
    };
    static struct problems problems;
    problems_init(&problems);
    log_init("experts_test", LOG_ERROR);
    if (checkpoint_open(&checkpoint, argv[1], &problems)) {
        fprintf(stderr, "%s\n", problems.text);
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    checkpoint_close(&checkpoint);
    return failed;
}
