/* The head of a region: there and back, any bit turned is found, ranks and places agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/region.h"

static struct checkpoint released(void)
{
    struct checkpoint c = {.shape = {.layers = 93,
                                     .dense_layers = 1,
                                     .experts = 896,
                                     .chosen = 16,
                                     .latent = 3584,
                                     .expert_width = 3072,
                                     .band = 256,
                                     .bands = 12,
                                     .situ = {4, 25}}};
    memset(c.digest, 7, sizeof c.digest);
    return c;
}

static struct region make(const char *layers, const char *experts, const char *bands, bool data)
{
    struct checkpoint c = released();
    struct problems p;
    struct tile_set t;
    struct region g;
    problems_init(&p);
    assert_int_equal(tile_set_parse(&t, &c.shape, layers, experts, bands, &p), 0);
    assert_int_equal(region_init(&g, &c, &t, data, &p), 0);
    return g;
}

static void the_released_sizes(void **state)
{
    struct region g = make(NULL, NULL, NULL, true);
    assert_int_equal(g.tile_bytes, 1462272);
    assert_int_equal(g.tile_stride, 1462272);
    assert_int_equal(g.tiles, 989184);
    assert_int_equal(g.data_offset % REGION_BLOCK, 0);
    assert_true(g.data_offset >= REGION_BLOCK + g.tiles * SUM_BYTES);
    assert_int_equal(region_bytes(&g), g.data_offset + 1446456066048ull);
    assert_int_equal(make(NULL, NULL, NULL, false).data_offset, 0);
}

static void there_and_back(void **state)
{
    struct region g = make("1-5,9,90-92", "0-99,500-895", "0,2,4-7", true), back;
    struct shape s;
    struct tile_set t;
    uint8_t block[REGION_BLOCK], again[REGION_BLOCK];
    const char *why;
    g.done = 77;
    region_encode(&g, block);
    assert_int_equal(region_decode(&back, block, &why), 0);
    region_encode(&back, again);
    assert_memory_equal(block, again, sizeof block);
    assert_false(back.complete);
    assert_int_equal(back.done, 77);
    assert_int_equal(back.tiles, 9 * 496 * 6);
    region_shape(&back, &s);
    assert_int_equal(s.experts, 896);
    assert_true(s.situ[0] == 4 && s.situ[1] == 25);
    region_tiles(&back, &t);
    assert_int_equal(t.boxes, 6);
    struct checkpoint c = released();
    struct problems p;
    problems_init(&p);
    assert_int_equal(region_check(&back, "x", &c, &p), 0);
    c.digest[3] ^= 1;
    assert_int_equal(region_check(&back, "x", &c, &p), -EPROTO);
    assert_non_null(strstr(p.text, "another checkpoint"));
}

static void ranks_and_places(void **state)
{
    struct region g = make("1-5,9,90-92", "0-9,500-505", "0,2,4-7", true);
    for (uint64_t rank = 0; rank < g.tiles; rank++) {
        uint32_t at[3];
        region_place(&g, rank, at);
        assert_true(g.bands >> at[2] & 1);
        assert_int_equal(region_rank(&g, at[0], at[1], at[2]), rank);
    }
    uint32_t first[3], last[3];
    region_place(&g, 0, first);
    region_place(&g, g.tiles - 1, last);
    assert_memory_equal(first, ((uint32_t[]){1, 0, 0}), sizeof first);
    assert_memory_equal(last, ((uint32_t[]){92, 505, 7}), sizeof last);
}

static void any_bit_turned_is_found(void **state)
{
    struct region g = make(NULL, NULL, "0-5", true), back;
    uint8_t block[REGION_BLOCK];
    const char *why;
    g.complete = true;
    region_encode(&g, block);
    for (size_t bit = 0; bit < sizeof block * 8; bit++) {
        block[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(region_decode(&back, block, &why), -EBADMSG);
        block[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_int_equal(region_decode(&back, block, &why), 0);
}

/* A head whose checksum is right and whose numbers are not. */
static void impossible_numbers_are_refused(void **state)
{
    uint8_t block[REGION_BLOCK], broken[REGION_BLOCK];
    struct region g = make(NULL, NULL, "0-5", true), back;
    const char *why;
    g.complete = true;
    region_encode(&g, block);
    for (size_t at = 32; at < 1200; at += 4) {
        memcpy(broken, block, sizeof block);
        memset(broken + at, 0xff, 4);
        sum_of(broken, REGION_BLOCK - SUM_BYTES, broken + REGION_BLOCK - SUM_BYTES);
        if (region_decode(&back, broken, &why))
            continue;
        /* Numbers of runs that are not counted may be anything. */
        assert_true(back.tiles == g.tiles && back.data_offset == g.data_offset);
    }
}

/* A sum is the same for a tile in a region and for one whose columns lie apart. */
static void a_sum_does_not_depend_on_where_the_tile_lies(void **state)
{
    struct region g = make(NULL, NULL, "3", true);
    size_t up = 3072 / 2, us = 3072 / 32;
    uint8_t *rise = malloc(2 * 256 * (1792 + 112)), *w2 = malloc(3584 * up);
    uint8_t *s2 = malloc(3584 * us), *packed = malloc(g.tile_bytes);
    uint8_t *scratch = malloc(region_scratch(&g)), a[SUM_BYTES], b[SUM_BYTES], c[SUM_BYTES];
    for (size_t i = 0; i < 2 * 256 * (1792 + 112); i++)
        rise[i] = (uint8_t)(i * 7 >> 3);
    for (size_t i = 0; i < 3584 * up; i++)
        w2[i] = (uint8_t)(i * 11 >> 2);
    for (size_t i = 0; i < 3584 * us; i++)
        s2[i] = (uint8_t)(i * 13 >> 4) & 0x7f;
    struct region_tile t = {rise,
                            rise + 256 * 1792,
                            rise + 256 * (1792 + 112),
                            rise + 256 * (2 * 1792 + 112),
                            w2 + 3 * 128,
                            s2 + 3 * 8,
                            up,
                            us};
    region_sum(&g, &t, scratch, a);
    region_gather(&g, &t, packed);
    struct region_tile v = region_view(&g, packed);
    region_sum(&g, &v, scratch, b);
    sum_of(packed, g.tile_bytes, c);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_equal(a, c, sizeof a);
    memset(rise + 256 * 1792, 127, 256 * 112);
    memset(rise + 256 * (2 * 1792 + 112), 127, 256 * 112);
    assert_false(region_has_nan(&g, &t));
    s2[3583 * us + 3 * 8 + 7] = 255;
    assert_true(region_has_nan(&g, &t));
    assert_false(region_has_nan(&g, &v) && !memchr(v.s1, 255, 256 * 112));
    free(rise);
    free(w2);
    free(s2);
    free(packed);
    free(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_released_sizes),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(ranks_and_places),
        cmocka_unit_test(any_bit_turned_is_found),
        cmocka_unit_test(impossible_numbers_are_refused),
        cmocka_unit_test(a_sum_does_not_depend_on_where_the_tile_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
