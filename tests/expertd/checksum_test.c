/*
 * Packed regions and checksums: the same bits from regions as from the shards, and no bit of a
 * region or shard can be turned round without being found when its tile is read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/region.h"
#include "tests/expertd/fixture.h"

#define SUM(rows) ((rows)*FIXTURE_LATENT)
#define FLIPS     200
#define MEMORY    ((uint64_t)2 << 20)

static struct fixture fixture;
static struct serving *server;
static struct asker asker;

static const uint32_t all_experts[2] = {0, FIXTURE_EXPERTS};

static int make(void **state)
{
    fixture_make(&fixture, FIXTURE_RELEASED, NULL);
    return 0;
}

static int remove_it(void **state)
{
    fixture_remove(&fixture);
    return 0;
}

static void path_of(char path[160], const char *name)
{
    snprintf(path, 160, "%s/%s", fixture.folder, name);
}

static void open_server(const char **region, size_t regions)
{
    struct serving_options o = fixture_options(&fixture);
    o.memory = MEMORY;
    o.rows = 8;
    o.region = region;
    o.regions = regions;
    if (regions)
        o.checkpoint = NULL;
    server = fixture_serve(&o);
    fixture_asker_open(&asker, &fixture, serving_address(server));
}

static void close_server(void)
{
    asker_close(&asker);
    serving_close(server);
}

static void check(uint32_t layer, const uint32_t first_end[2], uint64_t bands, unsigned seed)
{
    struct fixture_question q;
    int64_t got[SUM(5)] = {0}, expected[SUM(5)] = {0};
    fixture_ask_random(&q, layer, 5, first_end, seed);
    q.bands = bands;
    fixture_expect(&fixture, &q, expected);
    assert_int_equal(fixture_ask(&asker, &q, got, NULL), 0);
    assert_memory_equal(got, expected, sizeof got);
    fixture_question_free(&q);
}

static void regions_give_the_same_bits(void **state)
{
    char a[160], b[160], c[160];
    path_of(a, "a");
    path_of(b, "b");
    path_of(c, "c");
    fixture_pack(&fixture, "a", NULL, NULL, "0,2,5-7");
    fixture_pack(&fixture, "b", NULL, NULL, "1,3-4,8-11");
    fixture_pack(&fixture, "c", "2", "3-5,8-9", NULL);
    open_server((const char *[]){a, b}, 2);
    assert_true(serving_checks(server));
    assert_int_equal(serving_tiles(server),
                     (FIXTURE_LAYERS - 1) * FIXTURE_EXPERTS * FIXTURE_BANDS);
    for (unsigned i = 0; i < 6; i++)
        check(1 + i % 2, all_experts, i % 3 ? 0xfff : 0x3a5, 31 + i);
    close_server();
    open_server((const char *[]){c}, 1);
    check(2, (uint32_t[]){3, 6}, 0xfff, 41);
    check(2, (uint32_t[]){8, 10}, 0x0f0, 42);
    close_server();
}

/* ---- flips ----------------------------------------------------------------------------- */

/* Asks for one expert with one row; gives the error. */
static int ask_expert(uint32_t layer, uint32_t expert, char reason[256])
{
    struct fixture_question q;
    struct fixture_answer answer;
    int64_t sum[SUM(1)] = {0};
    fixture_ask_random(&q, layer, 1, (uint32_t[]){expert, expert + 1}, 5);
    int r = fixture_ask(&asker, &q, sum, &answer);
    snprintf(reason, 256, "%s", answer.reason);
    fixture_question_free(&q);
    return r;
}

/* Turns a bit, expects the expert to be refused by name, turns it back. */
static void flip_and_ask(const char *path, uint64_t bit, uint32_t layer, uint32_t expert)
{
    char reason[256], name[64];
    snprintf(name, sizeof name, "layer %u expert %u band", layer, expert);
    fixture_flip(path, bit);
    assert_int_equal(ask_expert(layer, expert, reason), -EIO);
    assert_non_null(strstr(reason, name));
    assert_non_null(strstr(reason, path));
    fixture_flip(path, bit);
}

static void any_bit_of_a_region_is_found(void **state)
{
    char path[160];
    struct region g;
    struct problems p;
    uint8_t block[REGION_BLOCK];
    const char *why;
    path_of(path, "flips");
    fixture_pack(&fixture, "flips", NULL, NULL, NULL);
    FILE *f = fopen(path, "rb");
    assert_int_equal(fread(block, 1, sizeof block, f), sizeof block);
    fclose(f);
    problems_init(&p);
    assert_int_equal(region_decode(&g, block, &why), 0);
    open_server((const char *[]){path}, 1);
    srand(99);
    for (int i = 0; i < FLIPS; i++) {
        uint32_t place[3];
        uint64_t rank = (uint64_t)rand() % g.tiles;
        uint64_t bit = (uint64_t)rand() % (g.tile_bytes * 8);
        region_place(&g, rank, place);
        flip_and_ask(path, region_tile_offset(&g, rank) * 8 + bit, place[0], place[1]);
    }
    assert_true(asker_counter(&asker, "tiles_bad") == 2 * FLIPS); /* each was read again */
    check(1, all_experts, 0xfff, 51);
    close_server();
}

static void any_bit_of_a_shard_is_found(void **state)
{
    const size_t expert_bits = 8 * 3 * FIXTURE_LATENT * FIXTURE_WIDTH * 17 / 32;
    char path[160];
    uint64_t at;
    fixture_pack(&fixture, REGION_SUMS, NULL, NULL, NULL);
    open_server(NULL, 0);
    assert_true(serving_checks(server));
    srand(98);
    for (int i = 0; i < FLIPS; i++) {
        uint32_t layer = 1 + (uint32_t)rand() % (FIXTURE_LAYERS - 1);
        uint32_t expert = (uint32_t)rand() % FIXTURE_EXPERTS;
        fixture_locate(&fixture, layer, expert, path, &at); /* w1 is the first of the six */
        flip_and_ask(path, at * 8 + (uint64_t)rand() % expert_bits, layer, expert);
    }
    check(2, all_experts, 0xfff, 52);
    close_server();
    path_of(path, REGION_SUMS);
    unlink(path);
}

/* Several requests hold the slot of a bad tile while it is forgotten. */
static void a_bad_tile_fails_all_who_want_it(void **state)
{
    enum { CALLS = 24 };
    static struct asker_call call[CALLS];
    struct fixture_question q;
    char path[160];
    uint64_t at;
    fixture_pack(&fixture, REGION_SUMS, NULL, NULL, NULL);
    fixture_locate(&fixture, 1, 6, path, &at);
    fixture_flip(path, at * 8 + 777);
    open_server(NULL, 0);
    fixture_ask_random(&q, 1, 1, (uint32_t[]){6, 7}, 61);
    for (int i = 0; i < CALLS; i++)
        fixture_call_start(&call[i], &asker, &q);
    for (int i = 0; i < CALLS; i++) {
        void *done;
        assert_int_equal(queue_take(&asker.done, 60, &done), 0);
    }
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(call[i].call.error, -EIO);
        asker_call_close(&call[i]);
    }
    fixture_question_free(&q);
    check(1, (uint32_t[]){0, 6}, 0xfff, 62);
    close_server();
    fixture_flip(path, at * 8 + 777);
    path_of(path, REGION_SUMS);
    unlink(path);
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

static void bad_regions_are_refused(void **state)
{
    char path[160], other_path[160];
    struct fixture other;
    struct serving_options o = fixture_options(&fixture);
    path_of(path, "bad");
    fixture_pack(&fixture, "bad", NULL, NULL, "0-3");
    o.checkpoint = NULL;
    o.region = (const char *[]){path, other_path};
    o.regions = 1;
    fixture_flip(path, 8 * 100);
    refused(&o, path, "damaged");
    fixture_flip(path, 8 * 100);
    fixture_flip(path, 0);
    refused(&o, path, "not a region");
    fixture_flip(path, 0);
    assert_int_equal(truncate(path, 40 * REGION_BLOCK), 0);
    refused(&o, path, "ends before");
    fixture_pack(&fixture, "bad", NULL, NULL, "0-3");

    fixture_make(&other, FIXTURE_SHUFFLED, NULL);
    fixture_pack(&other, "other", NULL, NULL, "4-11");
    snprintf(other_path, sizeof other_path, "%s/other", other.folder);
    o.regions = 2;
    refused(&o, other_path, "another checkpoint");
    fixture_remove(&other);

    o.regions = 1;
    o.bands = "0-1";
    refused(&o, "--bands", "--checkpoint");
    o = fixture_options(&fixture);
    o.checkpoint = NULL;
    refused(&o, "--checkpoint", "--region");
}

static void sums_of_another_checkpoint_are_refused(void **state)
{
    char path[160];
    struct serving_options o = fixture_options(&fixture);
    path_of(path, REGION_SUMS);
    fixture_pack(&fixture, REGION_SUMS, NULL, NULL, "0-3");
    refused(&o, path, "all tiles");
    fixture_pack(&fixture, REGION_SUMS, NULL, NULL, NULL);
    fixture_flip(path, 8 * 20);
    refused(&o, path, "damaged");
    o.unchecked = true;
    struct serving *s = fixture_serve(&o);
    assert_false(serving_checks(s));
    serving_close(s);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_give_the_same_bits),
        cmocka_unit_test(any_bit_of_a_region_is_found),
        cmocka_unit_test(any_bit_of_a_shard_is_found),
        cmocka_unit_test(a_bad_tile_fails_all_who_want_it),
        cmocka_unit_test(bad_regions_are_refused),
        cmocka_unit_test(sums_of_another_checkpoint_are_refused),
    };
    return cmocka_run_group_tests(tests, make, remove_it);
}
