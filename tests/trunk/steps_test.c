/*
 * Steps of a stage, compared to the bit: however rows are cut into steps, mixed with others,
 * committed, forgotten, forked, cancelled or run in two stages, a position's logits are the
 * same. Run with the folder of a small checkpoint.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/trunk/rig.h"

#define TOKENS 40

static const char *folder;
static uint32_t tokens[TOKENS], others[TOKENS];
static const uint32_t all[2] = {0, TOKENS};
static float *expected; /* [TOKENS][vocab], rows one by one */
static float *found;
static size_t vocab;

static const struct rig_options usual = {{0, 0}, 1, NULL, 64, 4, 512, 64 << 20, 0};

static void make_expected(void)
{
    struct rig r;
    struct rig_options o = usual;
    o.isa = "c";
    rig_open(&r, folder, &o);
    vocab = r.checkpoint.shape.vocab;
    for (uint32_t i = 0; i < TOKENS; i++) {
        tokens[i] = (i * 37 + 11) % (uint32_t)vocab;
        others[i] = (i * 101 + 3) % (uint32_t)vocab;
    }
    expected = calloc(TOKENS * vocab, sizeof *expected);
    found = calloc(TOKENS * vocab, sizeof *found);
    rig_sequence(&r, 7, TOKENS);
    rig_generate(&r, 7, tokens, all, 1, expected);
    rig_close(&r);
}

static void assert_logits(const float *logits, uint32_t position)
{
    assert_memory_equal(logits, expected + position * vocab, vocab * sizeof *logits);
}

static void assert_all(void)
{
    assert_memory_equal(found, expected, TOKENS * vocab * sizeof *found);
}

static void check_usual(const struct rig_options *o, uint32_t chunk)
{
    struct rig r;
    rig_open(&r, folder, o);
    rig_sequence(&r, 1, TOKENS);
    rig_generate(&r, 1, tokens, all, chunk, found);
    assert_all();
    rig_close(&r);
}

static void chunks_change_nothing(void **state)
{
    static const uint32_t chunk[] = {1, 2, 3, 7, 33, TOKENS};
    for (size_t i = 0; i < sizeof chunk / sizeof *chunk; i++)
        check_usual(&usual, chunk[i]);
    assert_true(expected[0] != expected[1]); /* they are numbers, and not all alike */
}

static void threads_and_rooms_change_nothing(void **state)
{
    struct rig_options o = usual;
    o.threads = 3;
    check_usual(&o, 7);
    o.own_room = 1024; /* bundles of other sizes */
    check_usual(&o, 13);
    o.own_room = 300;
    check_usual(&o, 1);
}

static void company_changes_nothing(void **state)
{
    struct rig r;
    struct rig_step s;
    struct rig_options o = usual;
    o.pinned = 3 << 20; /* part of the weights streams */
    rig_open(&r, folder, &o);
    for (uint64_t id = 1; id <= 3; id++)
        rig_sequence(&r, id, TOKENS);
    for (uint32_t at = 0; at < TOKENS; at += 5) {
        rig_step_begin(&s);
        for (uint32_t i = at; i < at + 5; i++) { /* rows of three sequences, interleaved */
            rig_step_row(&s, 1, i, others[i]);
            rig_step_row(&s, 2, i, tokens[i]);
            if (i % 5 < 2)
                rig_step_row(&s, 3, at / 5 * 2 + i % 5, tokens[at / 5 * 2 + i % 5]);
        }
        rig_step_commit(&s, 3, at / 5 * 2);
        rig_step_commit(&s, 1, at);
        rig_step_commit(&s, 2, at);
        assert_int_equal(rig_step_run(&r, &s), 0);
        const float *logits = r.runner.output;
        for (size_t t = 0; t < s.body.n_sequence; t++, logits += vocab)
            if (s.sequence[t] != 1)
                assert_logits(logits, s.position[t]);
    }
    rig_close(&r);
}

/* Runs `right` good rows and then `wrong` bad ones from `at` on. */
static void run_draft(struct rig *r, uint32_t at, uint32_t right, uint32_t wrong)
{
    struct rig_step s;
    rig_step_begin(&s);
    rig_step_commit(&s, 1, at);
    for (uint32_t i = at; i < at + right; i++)
        rig_step_row(&s, 1, i, tokens[i]);
    for (uint32_t i = at + right; i < at + right + wrong; i++)
        rig_step_row(&s, 1, i, others[i]);
    if (rig_step_run(r, &s))
        fail_msg("%s", s.why);
    for (uint32_t i = 0; i < right; i++)
        assert_logits(r->runner.output + i * vocab, at + i);
}

static void accepted_rows_stand_others_are_forgotten(void **state)
{
    struct rig r;
    rig_open(&r, folder, &usual);
    rig_sequence(&r, 1, 2 * TOKENS);
    uint32_t at = 0;
    for (uint32_t right = 0; at + right + 4 < TOKENS; right = (right + 1) % 5) {
        run_draft(&r, at, right, 4 - right % 3);
        at += right;
    }
    assert_true(at > 20);
    rig_close(&r);
}

static void a_commit_without_rows_stands(void **state)
{
    struct rig r;
    struct rig_step s;
    rig_open(&r, folder, &usual);
    rig_sequence(&r, 1, TOKENS);
    run_draft(&r, 0, 6, 3);
    for (int twice = 0; twice < 2; twice++) {
        rig_step_begin(&s);
        rig_step_commit(&s, 1, 4);
        assert_int_equal(rig_step_run(&r, &s), 0);
    }
    run_draft(&r, 4, 3, 0);
    rig_step_begin(&s);
    rig_step_commit(&s, 1, 3);
    assert_int_equal(rig_step_run(&r, &s), -EINVAL);
    assert_string_equal(s.why, "sequence 1 cannot be cut to 3 positions: 4 are committed, 3 "
                               "pending");
    run_draft(&r, 7, 8, 0);
    rig_close(&r);
}

static void a_fork_goes_its_own_way(void **state)
{
    static const uint32_t first[2] = {0, 17}, second[2] = {17, TOKENS};
    static const uint64_t from_to[2] = {1, 2};
    struct rig r;
    struct rig_step s;
    char why[256];
    rig_open(&r, folder, &usual);
    rig_sequence(&r, 1, 100);
    rig_generate(&r, 1, tokens, first, 5, found);
    rig_step_begin(&s);
    rig_step_commit(&s, 1, 17);
    assert_int_equal(rig_step_run(&r, &s), 0);
    assert_int_equal(states_fork(&r.states, from_to, TOKENS, why, sizeof why), 0);
    rig_generate(&r, 1, others, second, 5, found); /* the old one leaves */
    states_end(&r.states, 1);
    rig_generate(&r, 2, tokens, second, 5, found + 17 * vocab);
    for (uint32_t i = 17; i < TOKENS; i++)
        assert_logits(found + i * vocab, i);
    rig_close(&r);
}

static void cancelled_rows_never_ran(void **state)
{
    struct rig r;
    struct rig_step s;
    rig_open(&r, folder, &usual);
    rig_sequence(&r, 1, TOKENS);
    run_draft(&r, 0, 5, 0);
    for (uint32_t layer = 1; layer < r.checkpoint.shape.layers; layer++) {
        r.cancel_layer = layer;
        rig_step_begin(&s);
        rig_step_commit(&s, 1, 5);
        for (uint32_t i = 5; i < 12; i++)
            rig_step_row(&s, 1, i, others[i]);
        assert_int_equal(rig_step_run(&r, &s), -ECANCELED);
    }
    r.cancel_layer = UINT32_MAX;
    run_draft(&r, 5, 20, 0);
    rig_close(&r);
}

static void two_stages_are_one(void **state)
{
    struct rig_options front = usual, back = usual;
    struct rig a, b;
    struct rig_step s;
    rig_open(&a, folder, &usual);
    uint32_t layers = a.checkpoint.shape.layers;
    rig_close(&a);
    for (uint32_t cut = 1; cut < layers; cut += 2) {
        front.layers[1] = back.layers[0] = cut;
        rig_open(&a, folder, &front);
        rig_open(&b, folder, &back);
        rig_sequence(&a, 1, TOKENS);
        rig_sequence(&b, 1, TOKENS);
        for (uint32_t at = 0; at < TOKENS; at += 10) {
            rig_step_begin(&s);
            rig_step_commit(&s, 1, at);
            for (uint32_t i = at; i < at + 10; i++)
                rig_step_row(&s, 1, i, tokens[i]);
            assert_int_equal(rig_step_run(&a, &s), 0);
            s.input = a.runner.output;
            s.input_bytes = a.runner.answer_bytes;
            assert_int_equal(rig_step_run(&b, &s), 0);
            for (uint32_t i = 0; i < 10; i++)
                assert_logits(b.runner.output + i * vocab, at + i);
        }
        rig_close(&a);
        rig_close(&b);
    }
}

static void refuse(struct rig *r, struct rig_step *s, int error, const char *why)
{
    assert_int_equal(rig_step_run(r, s), error);
    assert_string_equal(s->why, why);
    rig_step_begin(s);
}

static void bad_rows_are_refused(void **state)
{
    struct rig r;
    struct rig_step s;
    rig_open(&r, folder, &usual);
    rig_sequence(&r, 1, 6);
    run_draft(&r, 0, 4, 0);
    rig_step_begin(&s);
    rig_step_row(&s, 9, 0, 1);
    refuse(&r, &s, -ENOENT, "no such sequence: 9");
    rig_step_commit(&s, 9, 0);
    refuse(&r, &s, -ENOENT, "no such sequence: 9");
    rig_step_row(&s, 1, 4, 1);
    refuse(&r, &s, -EINVAL, "row 0: sequence 1 continues at position 0, not at 4");
    rig_step_commit(&s, 1, 5);
    refuse(&r, &s, -EINVAL,
           "sequence 1 cannot be cut to 5 positions: 0 are committed, 4 "
           "pending");
    rig_step_commit(&s, 1, 4);
    rig_step_commit(&s, 1, 3);
    refuse(&r, &s, -EBADMSG, "sequence 1 is committed twice in one step");
    rig_step_commit(&s, 1, 4);
    for (uint32_t i = 4; i < 7; i++)
        rig_step_row(&s, 1, i, tokens[i]);
    refuse(&r, &s, -ENOSPC, "row 2: sequence 1 was opened for 6 positions");
    run_draft(&r, 4, 2, 0); /* nothing of all that changed anything */
    rig_close(&r);
}

static void rooms_are_counted(void **state)
{
    struct rig r;
    char why[256];
    static const uint64_t same[2] = {1, 1}, fresh[2] = {1, 5};
    rig_open(&r, folder, &usual); /* 512 positions, and a page for each of 4 sequences */
    rig_sequence(&r, 1, 500);
    assert_int_equal(states_begin(&r.states, 2, 300, why, sizeof why), -ENOSPC);
    assert_string_equal(why, "no room for a sequence of 300 positions: 256 are free of 768");
    rig_sequence(&r, 2, 12);
    rig_sequence(&r, 1, 100); /* emptied, and smaller */
    rig_sequence(&r, 3, 300);
    rig_sequence(&r, 4, 1);
    assert_int_equal(states_begin(&r.states, 5, 1, why, sizeof why), -ENOSPC);
    assert_string_equal(why, "no room for another sequence: 4 are open, 4 at most");
    assert_int_equal(states_fork(&r.states, same, 10, why, sizeof why), -EINVAL);
    assert_int_equal(states_fork(&r.states, fresh, 10, why, sizeof why), -ENOSPC);
    states_end(&r.states, 77); /* no error */
    rig_close(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_change_nothing),
        cmocka_unit_test(threads_and_rooms_change_nothing),
        cmocka_unit_test(company_changes_nothing),
        cmocka_unit_test(accepted_rows_stand_others_are_forgotten),
        cmocka_unit_test(a_commit_without_rows_stands),
        cmocka_unit_test(a_fork_goes_its_own_way),
        cmocka_unit_test(cancelled_rows_never_ran),
        cmocka_unit_test(two_stages_are_one),
        cmocka_unit_test(bad_rows_are_refused),
        cmocka_unit_test(rooms_are_counted),
    };
    folder = argv[1];
    make_expected();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(expected);
    free(found);
    return failed;
}
