/* JSON from outside: what is refused and how it is said; and the arena for trees. */
#include "base/jsontext.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/jsontext_arena.h"
#include "tests/base/scratch.h"

static struct problems problems;

static void refused(const char *bytes, size_t length, const char *sentence)
{
    problems_init(&problems);
    assert_null(jsontext_parse("request body", bytes, length, &problems));
    assert_int_equal(problems.count, 1);
    if (strncmp(problems.text, sentence, strlen(sentence)))
        fail_msg("'%s' does not begin with '%s'", problems.text, sentence);
}

static void test_good(void **state)
{
    static const char text[] = " {\"a\": [1, 2.5, \"\\u00e9\", null]} \n";

    problems_init(&problems);
    json_t *document = jsontext_parse("x", text, strlen(text), &problems);
    assert_non_null(document);
    assert_int_equal(problems.count, 0);
    assert_int_equal(json_array_size(json_object_get(document, "a")), 4);
    json_decref(document);
}

static void test_strict(void **state)
{
#define REFUSED(text, sentence) refused(text, sizeof text - 1, "request body: " sentence)
    REFUSED("", "not valid JSON at line 1, column 0: ");
    REFUSED("12", "not valid JSON at line 1, column 2: '[' or '{' expected near '12'");
    REFUSED("{} {}", "not valid JSON at line 1, column 4: end of file expected near '{'");
    REFUSED("{\n\"a\":1,\"a\":2}", "not valid JSON at line 2, column 9: duplicate object key");
    REFUSED("[\"\xff\"]", "not valid JSON at line 1, column 2: unable to decode byte 0xff");
    REFUSED("[\"\\u0000\"]", "not valid JSON at line 1, column 9: \\u0000 is not allowed");
    REFUSED("[99999999999999999999]", "not valid JSON at line 1, column 21: too big integer");
    REFUSED("[1e999]", "not valid JSON at line 1, column 6: real number overflow");
    REFUSED("[NaN]", "not valid JSON at line 1, column 4: invalid token near 'NaN'");
    REFUSED("[1,]", "not valid JSON at line 1, column 4: unexpected token near ']'");
    REFUSED("[1]\0", "not valid JSON at line 1, column 4: end of file expected");
#undef REFUSED
}

static void test_deep(void **state)
{
    static char deep[100000];

    memset(deep, '[', sizeof deep);
    refused(deep, sizeof deep, "request body: not valid JSON at line 1, column 2049: maximum");
}

static void test_file(void **state)
{
    struct scratch s;
    char sentence[1024];

    scratch_open(&s);
    scratch_write(&s, "f.json", "[true]", 6);
    problems_init(&problems);
    json_t *document = jsontext_file(scratch_path(&s, "f.json"), 6, &problems);
    assert_true(json_is_true(json_array_get(document, 0)));
    json_decref(document);
    assert_null(jsontext_file(scratch_path(&s, "f.json"), 5, &problems));
    snprintf(sentence, sizeof sentence, "%s/f.json: expected at most 5 bytes, found more",
             s.folder);
    assert_string_equal(problems.text, sentence);

    problems_init(&problems);
    assert_null(jsontext_file(s.folder, 5, &problems));
    snprintf(sentence, sizeof sentence, "%s: expected a regular file", s.folder);
    assert_string_equal(problems.text, sentence);

    problems_init(&problems);
    assert_null(jsontext_file(scratch_path(&s, "none"), 5, &problems));
    snprintf(sentence, sizeof sentence, "%s/none: cannot be read: No such file or directory",
             s.folder);
    assert_string_equal(problems.text, sentence);
    scratch_close(&s);
}

static void test_arena(void **state)
{
    static const char text[] = "{\"a\": [1, 2, 3]}";
    struct jsontext_arena arena;

    problems_init(&problems);
    assert_int_equal(jsontext_arena_open(&arena, 65536), 0);
    json_t *outside = jsontext_parse("x", text, strlen(text), &problems);
    size_t most = 0;
    for (int i = 0; i < 1000; i++) { /* far more than fits without being emptied */
        jsontext_arena_enter(&arena);
        json_t *inside = jsontext_parse("x", text, strlen(text), &problems);
        assert_true(json_equal(inside, outside));
        most = arena.used > most ? arena.used : most;
        jsontext_arena_leave(&arena);
    }
    assert_in_range(most, 100, 65536 / 2);
    assert_int_equal(problems.count, 0);
    json_decref(outside); /* malloc's, and freed */
    jsontext_arena_close(&arena);
}

static void test_arena_bounds_a_tree(void **state)
{
    static char text[40001];
    struct jsontext_arena arena;

    text[0] = '[';
    for (size_t i = 1; i < sizeof text; i += 2)
        memcpy(text + i, "1,", i + 1 < sizeof text ? 2 : 1);
    memcpy(text + sizeof text - 2, "1]", 2);
    problems_init(&problems);
    assert_int_equal(jsontext_arena_open(&arena, 65536), 0);
    jsontext_arena_enter(&arena);
    assert_null(jsontext_parse("x", text, sizeof text, &problems));
    jsontext_arena_leave(&arena);
    assert_string_equal(problems.text,
                        "x: not enough memory for a JSON document of 40001 bytes");
    jsontext_arena_close(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),  cmocka_unit_test(test_strict),
        cmocka_unit_test(test_deep),  cmocka_unit_test(test_file),
        cmocka_unit_test(test_arena), cmocka_unit_test(test_arena_bounds_a_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
