/* Slots, shares and counts: what stays, what goes, and what is known after a restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/file.h"
#include "expertd/cache.h"
#include "expertd/counts_file.h"

static const struct shape shape = {.layers = 5, .dense_layers = 1, .experts = 10};

static struct memory memory;
static struct cache cache;

static void open_cache(size_t slots)
{
    memory_init(&memory, 0);
    assert_int_equal(cache_open(&cache, &shape, slots, DISK_PAGE, &memory), 0);
}

static void close_cache(void)
{
    memory_fini(&memory);
}

/* One use, to its end. */
static void use(uint32_t layer, uint32_t expert)
{
    cache_use(&cache, layer, expert);
    struct cache_entry *e = cache_find(&cache, layer, expert, 1);
    if (e)
        cache_pin(&cache, e);
    else
        e = cache_take(&cache, layer, expert, 1);
    assert_non_null(e);
    e->state = CACHE_READY;
    cache_unpin(&cache, e);
}

static void every_slot_is_its_own(void **state)
{
    open_cache(7);
    for (uint32_t e = 0; e < 7; e++) {
        struct cache_entry *x = cache_take(&cache, 1, e, 1);
        assert_non_null(x);
        for (uint32_t f = 0; f < e; f++)
            assert_ptr_not_equal(cache_find(&cache, 1, f, 1)->bytes, x->bytes);
    }
    assert_null(cache_take(&cache, 2, 0, 1)); /* all are pinned */
    close_cache();
}

static void bands_are_found_within_more_bands(void **state)
{
    open_cache(4);
    struct cache_entry *some = cache_take(&cache, 1, 3, 0x3);
    struct cache_entry *more = cache_take(&cache, 1, 3, 0xf);
    assert_ptr_equal(cache_find(&cache, 1, 3, 0x8), more);
    assert_non_null(cache_find(&cache, 1, 3, 0x1));
    assert_null(cache_find(&cache, 1, 3, 0x10));
    cache_drop(&cache, more);
    assert_ptr_equal(cache_find(&cache, 1, 3, 0x1), some);
    assert_null(cache_find(&cache, 1, 3, 0x8));
    close_cache();
}

static void a_dropped_slot_is_free_after_its_last_pin(void **state)
{
    open_cache(1);
    struct cache_entry *e = cache_take(&cache, 1, 1, 1);
    cache_pin(&cache, e);
    cache_drop(&cache, e);
    assert_null(cache_find(&cache, 1, 1, 1));
    assert_null(cache_take(&cache, 1, 2, 1));
    cache_unpin(&cache, e);
    assert_null(cache_take(&cache, 1, 2, 1));
    cache_unpin(&cache, e);
    assert_ptr_equal(cache_take(&cache, 1, 2, 1), e);
    close_cache();
}

/* What is wanted every time stays, whatever else passes. */
static void a_sweep_does_not_empty_it(void **state)
{
    unsigned hits = 0;
    open_cache(10);
    for (unsigned token = 0; token < 30; token++)
        for (uint32_t layer = 1; layer < 5; layer++) {
            cache_visit(&cache, layer);
            hits += token > 3 && cache_find(&cache, layer, 0, 1);
            use(layer, 0);
            for (uint32_t i = 0; i < 3; i++)
                use(layer, 1 + (token * 3 + i) % 9);
        }
    assert_int_equal(hits, 26 * 4);
    close_cache();
}

static void counts_survive_a_restart(void **state)
{
    static const uint8_t digest[16] = {1, 2, 3}, other[16] = {1, 2, 4};
    char path[] = "/tmp/kapok-counts-XXXXXX";
    struct worth *list[] = {&cache.worth, &cache.worth};
    close(mkstemp(path));
    unlink(path);
    open_cache(4);
    assert_int_equal(counts_file_load(path, digest, list, 1), -ENOENT);
    cache_visit(&cache, 2);
    cache_use(&cache, 2, 7);
    cache_use(&cache, 2, 7);
    float worth = worth_of(&cache.worth, 2, 7);
    assert_true(worth > 2);
    assert_int_equal(counts_file_save(path, digest, list, 1), 0);
    close_cache();

    open_cache(4);
    assert_true(worth_of(&cache.worth, 2, 7) == 0);
    assert_int_equal(counts_file_load(path, other, list, 1), -EBADMSG);
    assert_int_equal(counts_file_load(path, digest, list, 2), -EBADMSG);
    assert_true(worth_of(&cache.worth, 2, 7) == 0);
    assert_int_equal(counts_file_load(path, digest, list, 1), 0);
    assert_true(worth_of(&cache.worth, 2, 7) == worth);

    char *bytes;
    size_t length;
    assert_int_equal(file_read(path, 1 << 20, &bytes, &length), 0);
    bytes[length / 2] ^= 16;
    assert_int_equal(file_write(path, bytes, length, 0644), 0);
    assert_int_equal(counts_file_load(path, digest, list, 1), -EBADMSG);
    assert_int_equal(file_write(path, bytes, length / 2, 0644), 0);
    assert_int_equal(counts_file_load(path, digest, list, 1), -EBADMSG);
    free(bytes);
    unlink(path);
    close_cache();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_slot_is_its_own),
        cmocka_unit_test(bands_are_found_within_more_bands),
        cmocka_unit_test(a_dropped_slot_is_free_after_its_last_pin),
        cmocka_unit_test(a_sweep_does_not_empty_it),
        cmocka_unit_test(counts_survive_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
