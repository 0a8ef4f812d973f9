/* The list of sentences: its order, its bound, and names from outside in it. */
#include "base/problems.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct problems problems;

static void test_sentences_one_a_line(void **state)
{
    problems_init(&problems);
    assert_string_equal(problems.text, "");
    assert_int_equal(problems.count, 0);
    problems_add(&problems, "first %d", 1);
    problems_add(&problems, "second %s", "two");
    assert_string_equal(problems.text, "first 1\nsecond two");
    assert_int_equal(problems.length, strlen(problems.text));
    assert_int_equal(problems.count, 2);
}

static void test_beyond_the_room_they_are_counted(void **state)
{
    char line[100];
    size_t kept = 0;

    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\0';
    problems_init(&problems);
    for (int i = 0; i < 100; i++)
        problems_add(&problems, "%s", line);
    assert_int_equal(problems.count, 100);
    assert_true(problems.length < sizeof problems.text);
    assert_int_equal(problems.length, strlen(problems.text));
    for (const char *at = problems.text; at; at = strchr(at + 1, '\n'))
        kept++;
    assert_int_equal(kept, sizeof problems.text / sizeof line);
    problems_add(&problems, "short"); /* a later one that fits is kept */
    assert_non_null(strstr(problems.text, "\nshort"));
}

static void test_a_sentence_longer_than_the_list_is_cut(void **state)
{
    static char line[2 * sizeof problems.text];

    memset(line, 'y', sizeof line - 1);
    problems_init(&problems);
    problems_add(&problems, "%s", line);
    assert_int_equal(problems.count, 1);
    assert_true(problems.length > sizeof problems.text - 16);
    assert_int_equal(problems.length, strlen(problems.text));
}

static void test_control_characters_become_spaces(void **state)
{
    problems_init(&problems);
    problems_add(&problems, "tensor %s", "a\nb\x1b[31m\x7f\xc3\xa9");
    assert_string_equal(problems.text, "tensor a b [31m \xc3\xa9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences_one_a_line),
        cmocka_unit_test(test_beyond_the_room_they_are_counted),
        cmocka_unit_test(test_a_sentence_longer_than_the_list_is_cut),
        cmocka_unit_test(test_control_characters_become_spaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
