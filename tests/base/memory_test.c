/* The table of memory: alignment, budget, bounds and what it prints. */
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_aligned_and_zeroed(void **state)
{
    static const size_t sizes[] = {0, 1, 4096, 5000, MEMORY_HUGE - 1, MEMORY_HUGE, 5000000};
    struct memory m;

    memory_init(&m, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *start = NULL;
        assert_int_equal(memory_take(&m, "area", sizes[i], (void **)&start), 0);
        size_t align = sizes[i] >= MEMORY_HUGE ? MEMORY_HUGE : 4096;
        assert_int_equal((uintptr_t)start % align, 0);
        for (size_t b = 0; b < sizes[i]; b += 511)
            assert_int_equal(start[b], 0);
        memset(start, 0xff, sizes[i]);
    }
    memory_fini(&m);
    assert_int_equal(m.areas, 0);
    assert_int_equal(m.taken, 0);
}

static void test_the_budget_holds(void **state)
{
    struct memory m;
    void *start = &m;

    memory_init(&m, 3 * 4096);
    assert_int_equal(memory_take(&m, "a", 4097, &start), 0);
    assert_int_equal(m.taken, 8192);
    void *before = start;
    assert_int_equal(memory_take(&m, "b", 4097, &start), -ENOMEM);
    assert_int_equal(memory_take(&m, "b", SIZE_MAX, &start), -ENOMEM);
    assert_int_equal(memory_take(&m, "b", SIZE_MAX / 2, &start), -ENOMEM);
    assert_ptr_equal(start, before);
    assert_int_equal(m.areas, 1);
    assert_int_equal(memory_take(&m, "b", 4096, &start), 0);
    assert_int_equal(memory_take(&m, "c", 1, &start), -ENOMEM);
    memory_fini(&m);
}

static void test_the_machine_has_an_end(void **state)
{
    struct memory m;
    void *start;

    memory_init(&m, 0);
    assert_int_equal(memory_take(&m, "all", SIZE_MAX / 2, &start), -ENOMEM);
    assert_int_equal(m.areas, 0);
    memory_fini(&m);
}

static void test_the_table_is_bounded(void **state)
{
    struct memory m;
    void *start;

    memory_init(&m, 0);
    for (int i = 0; i < MEMORY_AREAS; i++)
        assert_int_equal(memory_take(&m, "small", 1, &start), 0);
    assert_int_equal(memory_take(&m, "one more", 1, &start), -ENOSPC);
    memory_fini(&m);
}

static void test_printed_largest_first(void **state)
{
    struct memory m;
    void *start;
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    memory_init(&m, 1 << 20);
    assert_int_equal(memory_take(&m, "small area", 4096, &start), 0);
    assert_int_equal(memory_take(&m, "large area", 65536, &start), 0);
    memory_print(&m, out);
    fclose(out);
    const char *large = strstr(text, "large area"), *small = strstr(text, "small area");
    assert_true(large && small && large < small);
    assert_non_null(strstr(text, "69632 bytes"));
    assert_non_null(strstr(text, "1048576 bytes        1.0 MiB"));
    free(text);
    memory_fini(&m);
}

static void test_resident_grows_with_touch(void **state)
{
    struct memory m;
    void *start;
    size_t bytes = (size_t)16 << 20;

    memory_init(&m, 0);
    assert_int_equal(memory_take(&m, "touched", bytes, &start), 0);
    uint64_t before = memory_resident();
    assert_true(before > 0);
    memset(start, 1, bytes);
    assert_true(memory_resident() > before + bytes / 2);
    memory_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aligned_and_zeroed),
        cmocka_unit_test(test_the_budget_holds),
        cmocka_unit_test(test_the_machine_has_an_end),
        cmocka_unit_test(test_the_table_is_bounded),
        cmocka_unit_test(test_printed_largest_first),
        cmocka_unit_test(test_resident_grows_with_touch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
