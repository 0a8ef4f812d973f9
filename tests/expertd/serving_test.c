/*
 * Whole expert servers over loopback: however the tiles are split over servers, whatever the
 * order of tensors, the sums are the plain ones to the bit; requests may be repeated, run at
 * once, and fail alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"
#include "tests/expertd/fixture.h"

#define SUM(rows) ((rows)*FIXTURE_LATENT)

static struct fixture fixture;

static const uint32_t all_experts[2] = {0, FIXTURE_EXPERTS};

static int make_released(void **state)
{
    fixture_make(&fixture, FIXTURE_RELEASED, NULL);
    return 0;
}

static int make_shuffled(void **state)
{
    fixture_make(&fixture, FIXTURE_SHUFFLED, NULL);
    return 0;
}

static int remove_it(void **state)
{
    fixture_remove(&fixture);
    return 0;
}

/* ---- splits ---------------------------------------------------------------------------- */

struct holder { /* one server of a split */
    const char *layers, *experts, *bands;
    uint32_t expert_first, expert_end;
    uint64_t mask;
};

/* The part of a question whose experts this holder has. */
static void narrow(struct fixture_question *out, const struct fixture_question *q,
                   const struct holder *h)
{
    size_t at = 0;
    fixture_ask_random(out, q->layer, q->rows, all_experts, 1);
    memcpy(out->z, q->z, q->rows * FIXTURE_LATENT * sizeof *q->z);
    memset(out->counts, 0, q->rows * sizeof *out->counts);
    out->bands = q->bands & h->mask;
    out->total = 0;
    for (uint32_t t = 0; t < q->rows; t++)
        for (uint32_t i = 0; i < q->counts[t]; i++, at++)
            if (q->experts[at] >= h->expert_first && q->experts[at] < h->expert_end) {
                out->experts[out->total] = q->experts[at];
                out->weights[out->total++] = q->weights[at];
                out->counts[t]++;
            }
}

static void ask_holder(const struct holder *h, const struct fixture_question *q, int64_t *sum)
{
    struct serving_options o = fixture_options(&fixture);
    struct fixture_question part;
    struct asker a;
    o.layers = h->layers;
    o.experts = h->experts;
    o.bands = h->bands;
    struct serving *s = fixture_serve(&o);
    fixture_asker_open(&a, &fixture, serving_address(s));
    narrow(&part, q, h);
    assert_int_equal(fixture_ask(&a, &part, sum, NULL), 0);
    fixture_question_free(&part);
    asker_close(&a);
    serving_close(s);
}

static void check_split(const struct holder *h, size_t holders, uint32_t rows)
{
    struct fixture_question q;
    int64_t *got = calloc(SUM(rows), sizeof *got), *expected = calloc(SUM(rows), sizeof *got);
    fixture_ask_random(&q, 2, rows, all_experts, 11 + rows);
    fixture_expect(&fixture, &q, expected);
    for (size_t i = 0; i < holders; i++)
        ask_holder(&h[i], &q, got);
    assert_memory_equal(got, expected, SUM(rows) * sizeof *got);
    fixture_question_free(&q);
    free(got);
    free(expected);
}

static void every_split_gives_the_same_bits(void **state)
{
    static const struct holder whole[] = {{NULL, NULL, NULL, 0, 12, 0xfff}};
    static const struct holder halves[] = {{"2", NULL, "0-5", 0, 12, 0x03f},
                                           {"1-2", NULL, "6-11", 0, 12, 0xfc0}};
    static const struct holder uneven[] = {{NULL, NULL, "0,2,4", 0, 12, 0x015},
                                           {NULL, NULL, "1,3,5-6,11", 0, 12, 0x86a},
                                           {NULL, NULL, "7-10", 0, 12, 0x780}};
    static const struct holder grid[] = {{NULL, "0-4", "0-6", 0, 5, 0x07f},
                                         {NULL, "5-11", "0-6", 5, 12, 0x07f},
                                         {NULL, "0-7", "7-11", 0, 8, 0xf80},
                                         {NULL, "8-11", "7-11", 8, 12, 0xf80}};
    static const uint32_t rows[] = {1, 70};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_split(whole, 1, rows[i]);
        check_split(halves, 2, rows[i]);
        check_split(uneven, 3, rows[i]);
        check_split(grid, 4, rows[i]);
    }
}

static void twelve_servers(void **state)
{
    static const char *const band[] = {"0", "1", "2", "3", "4",  "5",
                                       "6", "7", "8", "9", "10", "11"};
    struct holder h[FIXTURE_BANDS];
    for (unsigned b = 0; b < FIXTURE_BANDS; b++)
        h[b] = (struct holder){NULL, NULL, band[b], 0, 12, (uint64_t)1 << b};
    check_split(h, FIXTURE_BANDS, 5);
}

/* ---- one server ------------------------------------------------------------------------ */

static struct serving *server;
static struct asker asker;

static void open_server(uint64_t memory, uint64_t threads)
{
    struct serving_options o = fixture_options(&fixture);
    if (memory)
        o.memory = memory;
    o.threads = threads;
    server = fixture_serve(&o);
    fixture_asker_open(&asker, &fixture, serving_address(server));
}

static void close_server(void)
{
    asker_close(&asker);
    serving_close(server);
}

/* Asks and compares; gives the counters. */
static struct fixture_answer check(const struct fixture_question *q)
{
    struct fixture_answer answer;
    int64_t *got = calloc(SUM(q->rows), sizeof *got);
    int64_t *expected = calloc(SUM(q->rows), sizeof *got);
    fixture_expect(&fixture, q, expected);
    assert_int_equal(fixture_ask(&asker, q, got, &answer), 0);
    assert_memory_equal(got, expected, SUM(q->rows) * sizeof *got);
    free(got);
    free(expected);
    return answer;
}

static void repeating_gives_the_same_and_reads_nothing(void **state)
{
    struct fixture_question q;
    open_server(0, 1);
    fixture_ask_random(&q, 1, 4, all_experts, 3);
    struct fixture_answer first = check(&q), second = check(&q);
    assert_true(first.bytes_read > 0 && first.tiles_read > 0);
    assert_int_equal(first.tiles_hit, 0);
    assert_int_equal(second.bytes_read, 0);
    assert_int_equal(second.tiles_read, 0);
    assert_int_equal(second.tiles_hit, first.tiles_read);
    fixture_question_free(&q);
    close_server();
}

static void a_restarted_server_gives_the_same(void **state)
{
    struct fixture_question q;
    fixture_ask_random(&q, 1, 4, all_experts, 4);
    for (int i = 0; i < 2; i++) {
        open_server(0, 2);
        check(&q);
        close_server();
    }
    fixture_question_free(&q);
}

static void rows_without_experts(void **state)
{
    struct fixture_question q;
    open_server(0, 2);
    fixture_ask_random(&q, 1, 3, all_experts, 5);
    memset(q.counts, 0, 3 * sizeof *q.counts);
    q.total = 0;
    check(&q);
    fixture_question_free(&q);
    close_server();
}

static void many_requests_at_once(void **state)
{
    enum { CALLS = 40, ROWS = 7 };
    static struct asker_call call[CALLS];
    struct fixture_question q[CALLS];
    open_server((uint64_t)3 << 20, 3); /* a few slots only */
    for (unsigned i = 0; i < CALLS; i++) {
        fixture_ask_random(&q[i], 1 + i % 2, ROWS, all_experts, 100 + i);
        fixture_call_start(&call[i], &asker, &q[i]);
    }
    for (unsigned i = 0; i < CALLS; i++) {
        void *done;
        assert_int_equal(queue_take(&asker.done, 60, &done), 0);
    }
    for (unsigned i = 0; i < CALLS; i++) {
        int64_t expected[SUM(ROWS)] = {0};
        assert_int_equal(call[i].call.error, 0);
        fixture_expect(&fixture, &q[i], expected);
        assert_memory_equal(call[i].call.reply.payload, expected, sizeof expected);
        asker_call_close(&call[i]);
        fixture_question_free(&q[i]);
    }
    close_server();
}

static void a_hint_reads_ahead_once(void **state)
{
    struct fixture_question q;
    open_server(0, 1);
    fixture_ask_random(&q, 1, 1, all_experts, 21);
    uint32_t expert[FIXTURE_CHOSEN];
    for (size_t i = 0; i < q.total; i++)
        expert[i] = q.experts[i];
    assert_int_equal(asker_hint(&asker, 1, expert, q.total), 0);
    double until = thread_now() + 20;
    while (asker_counter(&asker, "reads") < (double)q.total && thread_now() < until)
        ;
    struct fixture_answer answer = check(&q);
    assert_true(answer.bytes_read > 0); /* counted to the first who wanted them */
    assert_true(asker_counter(&asker, "experts_read_ahead_used") == (double)q.total);
    assert_true(asker_counter(&asker, "reads") == (double)q.total);
    assert_int_equal(asker_hint(&asker, 0, expert, 1), -EBADMSG);
    assert_int_equal(asker_hint(&asker, 1, (uint32_t[]){FIXTURE_EXPERTS}, 1), -EBADMSG);
    fixture_question_free(&q);
    close_server();
}

static void a_shared_expert_is_read_once(void **state)
{
    struct fixture_question q;
    open_server(0, 2);
    fixture_ask_random(&q, 1, 100, (uint32_t[]){3, 4}, 6);
    struct fixture_answer answer = check(&q);
    assert_int_equal(answer.tiles_read, FIXTURE_BANDS);
    fixture_question_free(&q);
    close_server();
}

static void what_is_not_held_is_named(void **state)
{
    struct serving_options o = fixture_options(&fixture);
    struct fixture_question q;
    struct fixture_answer answer;
    int64_t sum[SUM(2)] = {0};
    o.bands = "0-3";
    server = fixture_serve(&o);
    fixture_asker_open(&asker, &fixture, serving_address(server));
    fixture_ask_random(&q, 1, 2, (uint32_t[]){5, 6}, 7);
    assert_int_equal(fixture_ask(&asker, &q, sum, &answer), -ENOENT);
    assert_non_null(strstr(answer.reason, "layer 1 expert 5 band 4"));
    q.bands = 0xf;
    check(&q);
    fixture_question_free(&q);
    close_server();
}

static void a_request_too_large_is_refused(void **state)
{
    struct fixture_question q;
    struct fixture_answer answer;
    static int64_t sum[SUM(101)];
    open_server(0, 1);
    fixture_ask_random(&q, 1, 101, all_experts, 8);
    q.total = 0; /* small enough for the link */
    memset(q.counts, 0, 101 * sizeof *q.counts);
    assert_int_equal(fixture_ask(&asker, &q, sum, &answer), -EMSGSIZE);
    assert_non_null(strstr(answer.reason, "at most 100 rows"));
    fixture_question_free(&q);
    close_server();
}

/* ---- what goes wrong on the disk ------------------------------------------------------- */

static void a_nan_scale_fails_its_request_only(void **state)
{
    struct fixture_question bad, good;
    struct fixture_answer answer;
    int64_t sum[SUM(2)] = {0};
    fixture_poison(&fixture, 1, 4, 255);
    open_server(0, 2);
    fixture_ask_random(&bad, 1, 2, (uint32_t[]){3, 7}, 9);
    fixture_ask_random(&good, 1, 2, (uint32_t[]){5, 9}, 10);
    assert_int_equal(fixture_ask(&asker, &bad, sum, &answer), -EDOM);
    assert_non_null(strstr(answer.reason, "layer 1 expert 4"));
    check(&good);
    fixture_poison(&fixture, 1, 4, 120);
    fixture_question_free(&bad);
    fixture_question_free(&good);
    close_server();
}

static void a_product_out_of_range_is_an_error(void **state)
{
    struct fixture_question q;
    struct fixture_answer answer;
    int64_t sum[SUM(1)] = {0};
    open_server(0, 2);
    fixture_ask_random(&q, 2, 1, (uint32_t[]){6, 7}, 11);
    for (size_t i = 0; i < q.total; i++)
        q.weights[i] = 1e30f;
    assert_int_equal(fixture_ask(&asker, &q, sum, &answer), -ERANGE);
    assert_non_null(strstr(answer.reason, "layer 2 expert 6"));
    fixture_question_free(&q);
    close_server();
}

static void a_file_cut_under_us_fails_its_requests_only(void **state)
{
    struct fixture_question bad, good;
    struct fixture_answer answer;
    int64_t sum[SUM(2)] = {0};
    char path[160];
    uint64_t at;
    open_server(0, 2);
    fixture_locate(&fixture, 2, 9, path, &at); /* "9" is the last name of the file */
    assert_int_equal(truncate(path, (off_t)at + 100), 0);
    fixture_ask_random(&bad, 2, 2, (uint32_t[]){8, 10}, 12);
    fixture_ask_random(&good, 2, 2, (uint32_t[]){1, 8}, 13);
    assert_int_equal(fixture_ask(&asker, &bad, sum, &answer), -ENODATA);
    assert_non_null(strstr(answer.reason, "layer 2 expert 9"));
    assert_non_null(strstr(answer.reason, path));
    check(&good);
    assert_int_equal(fixture_ask(&asker, &bad, sum, &answer), -ENODATA); /* and again */
    fixture_question_free(&bad);
    fixture_question_free(&good);
    close_server();
}

/* ---- refusals at start ----------------------------------------------------------------- */

static void refused(const struct serving_options *o, const char *a, const char *b)
{
    struct problems p;
    struct serving *s = NULL;
    problems_init(&p);
    assert_true(serving_open(&s, o, &p) < 0);
    assert_null(s);
    assert_non_null(strstr(p.text, a));
    assert_non_null(strstr(p.text, b));
}

static void a_missing_tensor_is_named(void **state)
{
    static const char name[] =
        "language_model.model.layers.2.block_sparse_moe.experts.7.w3.weight_scale";
    struct fixture f;
    fixture_make(&f, FIXTURE_RELEASED, name);
    struct serving_options o = fixture_options(&f);
    refused(&o, name, "");
    o.layers = "1"; /* what is not served need not be there */
    struct serving *s = fixture_serve(&o);
    serving_close(s);
    fixture_remove(&f);
}

static void bad_options_are_refused(void **state)
{
    struct serving_options o = fixture_options(&fixture);
    o.memory = 1000;
    refused(&o, "1000 bytes given", "are needed");
    o = fixture_options(&fixture);
    o.bands = "0-12";
    refused(&o, "bands", "0-11");
    o = fixture_options(&fixture);
    o.layers = "0";
    refused(&o, "layer 0", "1-2");
    o = fixture_options(&fixture);
    o.isa = "z80";
    refused(&o, "--isa", "");
    o = fixture_options(&fixture);
    o.checkpoint = "/nowhere";
    refused(&o, "/nowhere", "");
}

int main(void)
{
    const struct CMUnitTest released[] = {
        cmocka_unit_test(every_split_gives_the_same_bits),
        cmocka_unit_test(twelve_servers),
        cmocka_unit_test(repeating_gives_the_same_and_reads_nothing),
        cmocka_unit_test(a_restarted_server_gives_the_same),
        cmocka_unit_test(rows_without_experts),
        cmocka_unit_test(many_requests_at_once),
        cmocka_unit_test(a_hint_reads_ahead_once),
        cmocka_unit_test(a_shared_expert_is_read_once),
        cmocka_unit_test(what_is_not_held_is_named),
        cmocka_unit_test(a_request_too_large_is_refused),
        cmocka_unit_test(a_product_out_of_range_is_an_error),
        cmocka_unit_test(a_missing_tensor_is_named),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(a_nan_scale_fails_its_request_only),
        cmocka_unit_test(a_file_cut_under_us_fails_its_requests_only), /* the last: it cuts */
    };
    const struct CMUnitTest shuffled[] = {
        cmocka_unit_test(every_split_gives_the_same_bits),
        cmocka_unit_test(many_requests_at_once),
        cmocka_unit_test(repeating_gives_the_same_and_reads_nothing),
    };
    int failed = cmocka_run_group_tests(released, make_released, remove_it);
    return failed + cmocka_run_group_tests(shuffled, make_shuffled, remove_it);
}
