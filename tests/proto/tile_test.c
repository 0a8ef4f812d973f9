/* Tile sets from flags and from Hello, and what several of them cover together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/tile.h"
#include "proto/tile_hello.h"
#include "tests/proto/tiny.h"

static struct tile_set parsed(const char *layers, const char *experts, const char *bands)
{
    struct shape s = tiny_shape();
    struct tile_set t;
    struct problems p;
    problems_init(&p);
    if (tile_set_parse(&t, &s, layers, experts, bands, &p))
        fail_msg("%s", p.text);
    assert_int_equal(tile_set_check(&t, &s), 0);
    return t;
}

static void refused(const char *layers, const char *experts, const char *bands,
                    const char *sentence)
{
    struct shape s = tiny_shape();
    struct tile_set t;
    struct problems p;
    problems_init(&p);
    assert_int_equal(tile_set_parse(&t, &s, layers, experts, bands, &p), -EINVAL);
    if (!strstr(p.text, sentence))
        fail_msg("'%s' is not in: %s", sentence, p.text);
}

static void no_flags_mean_everything(void **state)
{
    struct shape s = tiny_shape();
    struct tile_set t = parsed(NULL, NULL, NULL);
    assert_int_equal(tile_set_count(&t, &s), 6 * 32 * 12);
    assert_int_equal(tile_set_bands(&t, 0, 0), 0); /* the dense layer */
    assert_int_equal(tile_set_bands(&t, 1, 31), 0xfff);
}

static void flags_cut_a_part_out(void **state)
{
    struct shape s = tiny_shape();
    struct tile_set t = parsed("1-2,5", "0-3,30", "0,2-3");
    assert_int_equal(tile_set_count(&t, &s), 3 * 5 * 3);
    assert_int_equal(tile_set_bands(&t, 5, 30), 0xd);
    assert_int_equal(tile_set_bands(&t, 5, 4), 0);
    assert_int_equal(tile_set_bands(&t, 3, 0), 0);
}

static void bad_flags_are_named(void **state)
{
    refused("0-3", NULL, NULL, "layer 0 has no experts");
    refused("1-7", NULL, NULL, "layers 1-7");
    refused("", NULL, NULL, "layers");
    refused("3-1", NULL, NULL, "layers 3-1");
    refused(NULL, "32", NULL, "experts 32");
    refused(NULL, "1,1", NULL, "experts 1");
    refused(NULL, "5,", NULL, "experts");
    refused(NULL, "a", NULL, "experts a");
    refused(NULL, "1 -2", NULL, "experts");
    refused(NULL, "-1", NULL, "experts");
    refused(NULL, "99999999999999999999", NULL, "experts");
    refused(NULL, NULL, "12", "bands 12");
    refused(NULL, NULL, "0-11x", "bands");
}

static void too_many_boxes_are_refused(void **state)
{
    char layers[] = "1,3,5";
    char experts[200] = "";
    for (int i = 0; i < 30; i += 2)
        sprintf(experts + strlen(experts), "%s%d", i ? "," : "", i);
    struct shape s = tiny_shape();
    struct tile_set t = parsed(layers, experts, NULL); /* 3 x 15 boxes */
    assert_int_equal(tile_set_count(&t, &s), 3 * 15 * 12);
    s.layers = 20;
    struct problems p;
    problems_init(&p);
    assert_int_equal(tile_set_parse(&t, &s, "1,3,5,7,9", experts, NULL, &p), -EINVAL);
    assert_non_null(strstr(p.text, "75 boxes of tiles"));
}

static void check_finds_boxes_outside(void **state)
{
    struct shape s = tiny_shape();
    const struct tile_box good = {1, 7, 0, 32, 0xfff};
    const struct tile_box bad[] = {
        {0, 7, 0, 32, 1}, {1, 8, 0, 32, 1}, {2, 2, 0, 32, 1},      {1, 7, 0, 33, 1},
        {1, 7, 5, 5, 1},  {1, 7, 0, 32, 0}, {1, 7, 0, 32, 0x1000}, {7, 1, 0, 32, 1},
    };
    struct tile_set t = {1, {good}};
    assert_int_equal(tile_set_check(&t, &s), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        t.box[0] = bad[i];
        assert_int_equal(tile_set_check(&t, &s), -EINVAL);
    }
    t.boxes = TILE_BOXES + 1;
    assert_int_equal(tile_set_check(&t, &s), -EINVAL);
}

static void hello_carries_a_set(void **state)
{
    struct shape s = tiny_shape();
    struct tile_set t = parsed("1-2,5", "0-3,30", "0,2-3"), back;
    struct tile_hello memory;
    Kapok__HelloReply h = KAPOK__HELLO_REPLY__INIT;
    const char *why = NULL;
    tile_hello_write(&memory, &t, &h);
    uint8_t bytes[4096];
    size_t n = kapok__hello_reply__pack(&h, bytes);
    assert_true(n < sizeof bytes);
    Kapok__HelloReply *received = kapok__hello_reply__unpack(NULL, n, bytes);
    assert_int_equal(tile_hello_read(&back, received, &s, &why), 0);
    assert_int_equal(back.boxes, t.boxes);
    assert_memory_equal(back.box, t.box, t.boxes * sizeof t.box[0]);
    kapok__hello_reply__free_unpacked(received, NULL);
}

static void a_hello_that_lies_is_refused(void **state)
{
    struct shape s = tiny_shape();
    struct tile_set t = parsed(NULL, NULL, NULL), untouched = {.boxes = 77};
    struct tile_hello memory;
    Kapok__HelloReply h = KAPOK__HELLO_REPLY__INIT;
    const char *why = NULL;
    tile_hello_write(&memory, &t, &h);
    memory.box[0].expert_end = UINT32_MAX;
    assert_int_equal(tile_hello_read(&untouched, &h, &s, &why), -EBADMSG);
    assert_non_null(strstr(why, "grid"));
    h.n_tiles = TILE_BOXES + 1;
    assert_int_equal(tile_hello_read(&untouched, &h, &s, &why), -EBADMSG);
    assert_non_null(strstr(why, "more boxes"));
    assert_int_equal(untouched.boxes, 77);
}

static void coverage_adds_up(void **state)
{
    struct shape s = tiny_shape();
    struct tile_set low = parsed(NULL, NULL, "0-5"), high = parsed("1-5", NULL, "6-11"),
                    rest = parsed("6", "0-30", "6-11"), last = parsed("6", "31", "5-11");
    struct tile_coverage c;
    uint32_t tile[3] = {0};
    assert_int_equal(tile_coverage_open(&c, &s, 0, s.layers), 0);
    assert_int_equal(tile_coverage_needed(&c), shape_tiles(&s));
    assert_int_equal(tile_coverage_missing(&c, tile), 1);
    assert_int_equal(tile[0] * 10000 + tile[1] * 100 + tile[2], 10000);
    tile_coverage_add(&c, &low);
    tile_coverage_add(&c, &high);
    tile_coverage_add(&c, &rest);
    assert_int_equal(tile_coverage_missing(&c, tile), 1);
    assert_int_equal(tile[0], 6);
    assert_int_equal(tile[1], 31);
    assert_int_equal(tile[2], 6);
    assert_int_equal(tile_coverage_held(&c), shape_tiles(&s) - 6);
    tile_coverage_add(&c, &last); /* overlaps in band 5 */
    tile_coverage_add(&c, &low);
    assert_int_equal(tile_coverage_held(&c), shape_tiles(&s));
    assert_int_equal(tile_coverage_missing(&c, tile), 0);
    tile_coverage_clear(&c);
    assert_int_equal(tile_coverage_held(&c), 0);
    tile_coverage_close(&c);
}

static void coverage_of_a_stage_is_of_its_layers(void **state)
{
    struct shape s = tiny_shape();
    struct tile_set t = parsed("3-4", NULL, NULL);
    struct tile_coverage c;
    uint32_t tile[3];
    assert_int_equal(tile_coverage_open(&c, &s, 3, 5), 0);
    tile_coverage_add(&c, &t);
    assert_int_equal(tile_coverage_needed(&c), 2 * 32 * 12);
    assert_int_equal(tile_coverage_missing(&c, tile), 0);
    tile_coverage_close(&c);
    assert_int_equal(tile_coverage_open(&c, &s, 0, 1), 0); /* only the dense layer */
    assert_int_equal(tile_coverage_needed(&c), 0);
    assert_int_equal(tile_coverage_missing(&c, tile), 0);
    tile_coverage_close(&c);
}

static void sixty_four_bands_fit_a_mask(void **state)
{
    struct shape s = tiny_shape();
    struct tile_set t;
    struct problems p;
    struct tile_coverage c;
    uint32_t tile[3];
    s.bands = 64;
    problems_init(&p);
    assert_int_equal(tile_set_parse(&t, &s, NULL, NULL, "0-62", &p), 0);
    assert_int_equal(tile_coverage_open(&c, &s, 0, s.layers), 0);
    tile_coverage_add(&c, &t);
    assert_int_equal(tile_coverage_missing(&c, tile), 1);
    assert_int_equal(tile[2], 63);
    assert_int_equal(tile_set_parse(&t, &s, NULL, NULL, "63", &p), 0);
    tile_coverage_add(&c, &t);
    assert_int_equal(tile_coverage_missing(&c, tile), 0);
    tile_coverage_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_flags_mean_everything),
        cmocka_unit_test(flags_cut_a_part_out),
        cmocka_unit_test(bad_flags_are_named),
        cmocka_unit_test(too_many_boxes_are_refused),
        cmocka_unit_test(check_finds_boxes_outside),
        cmocka_unit_test(hello_carries_a_set),
        cmocka_unit_test(a_hello_that_lies_is_refused),
        cmocka_unit_test(coverage_adds_up),
        cmocka_unit_test(coverage_of_a_stage_is_of_its_layers),
        cmocka_unit_test(sixty_four_bands_fit_a_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
