/* Shards that are damaged or meant to harm: each refused, with file, tensor, expected and
 * found. */
#include "base/safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/safetensors_header.h"
#include "tests/base/shard.h"

static struct scratch scratch;
static struct problems problems;

static int set_up(void **state)
{
    scratch_open(&scratch);
    return 0;
}

static int tear_down(void **state)
{
    scratch_close(&scratch);
    return 0;
}

/* Opening the folder fails, and says all of these (NULL: no second). */
static void refused(int code, const char *sentence, const char *other)
{
    struct safetensors *s = (struct safetensors *)&problems;

    problems_init(&problems);
    int error = safetensors_open(&s, scratch.folder, &problems);
    if (error != code)
        fail_msg("%d instead of %d: %s", error, code, problems.text);
    assert_ptr_equal(s, &problems);
    assert_true(problems.count > 0);
    if (!strstr(problems.text, sentence) || (other && !strstr(problems.text, other)))
        fail_msg("'%s' does not say '%s', '%s'", problems.text, sentence, other);
}

/* One shard with this header is refused with this sentence. */
static void header_refused(const char *json, size_t data_bytes, const char *sentence)
{
    char whole[2048];

    snprintf(whole, sizeof whole, "%s/s.safetensors: %s", scratch.folder, sentence);
    shard_write(&scratch, "s.safetensors", json, data_bytes);
    refused(-EINVAL, whole, NULL);
}

/* One tensor t, described so, is refused with this sentence. */
static void tensor_refused(const char *dtype, const char *shape, const char *offsets,
                           const char *sentence)
{
    char json[1024], whole[1024 + 16];

    snprintf(json, sizeof json, "{\"t\":{\"dtype\":%s,\"shape\":%s,\"data_offsets\":%s}}",
             dtype, shape, offsets);
    snprintf(whole, sizeof whole, "tensor t: %s", sentence);
    header_refused(json, 8, whole);
}

static void test_cut_at_every_length(void **state)
{
    static const char json[] =
        "{\"a\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[12,20]}}";
    size_t header = 8 + strlen(json);
    char sentence[128];
    struct safetensors *s;

    for (size_t length = 0; length < header + 20; length++) {
        shard_write(&scratch, "s.safetensors", json, 20);
        assert_int_equal(truncate(scratch_path(&scratch, "s.safetensors"), (off_t)length), 0);
        if (length < 8)
            snprintf(sentence, sizeof sentence, "expected at least 8 bytes, found %zu", length);
        else if (length < header)
            snprintf(sentence, sizeof sentence,
                     "header length: expected at most %zu, found %zu", length - 8, header - 8);
        else
            snprintf(
                sentence, sizeof sentence,
                "tensor b: expected data_offsets within the file's %zu bytes, found [12, 20]",
                length - header);
        refused(-EINVAL, sentence, "s.safetensors: ");
    }
    shard_write(&scratch, "s.safetensors", json, 20);
    problems_init(&problems);
    assert_int_equal(safetensors_open(&s, scratch.folder, &problems), 0);
    safetensors_close(s);
    shard_write(&scratch, "s.safetensors", json, 21);
    snprintf(sentence, sizeof sentence, "to end with the file at byte %zu, found %zu",
             header + 21, header + 20);
    refused(-EINVAL, sentence, NULL);
}

static void test_header_lengths(void **state)
{
    static char much[SAFETENSORS_HEADER_MOST + 100];

    shard_write_raw(&scratch, "s.safetensors", UINT64_MAX, "{}", 2);
    refused(-EINVAL, "header length: expected at most 2, found 18446744073709551615", NULL);
    shard_write_raw(&scratch, "s.safetensors", (uint64_t)1 << 63, "{}", 2);
    refused(-EINVAL, "header length: expected at most 2, found 9223372036854775808", NULL);
    shard_write_raw(&scratch, "s.safetensors", UINT64_MAX - 7, "{}", 2); /* 8 more is nothing */
    refused(-EINVAL, "expected at most 2, found 18446744073709551608", NULL);
    shard_write_raw(&scratch, "s.safetensors", 0, "{}", 2);
    refused(-EINVAL, "s.safetensors: not valid JSON at line 1, column 0", NULL);
    shard_write_raw(&scratch, "s.safetensors", 1, "{}", 2);
    refused(-EINVAL, "s.safetensors: not valid JSON at line 1, column 1", NULL);
    shard_write_raw(&scratch, "s.safetensors", sizeof much, much, sizeof much);
    refused(-EINVAL, "header length: expected at most 16777216, found 16777316", NULL);
}

static void test_not_a_header(void **state)
{
    static char deep[8001];

    header_refused("{\"t\":", 0, "not valid JSON at line 1, column 5");
    header_refused("[]", 0, "expected a JSON object as header, found an array");
    header_refused("7", 0, "not valid JSON");
    header_refused("{\"\xff\":1}", 0, "not valid JSON at line 1, column 2: unable to decode");
    header_refused("{\"t\":5}", 0,
                   "tensor t: expected an object of dtype, shape and data_offsets, found 5");
    header_refused("{\"t\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1,
                   "tensor t: expected an object of dtype, shape and data_offsets, found {");
    header_refused("{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":1}}", 1,
                   "tensor t: expected an object of dtype, shape and data_offsets, found {");
    memset(deep, '[', sizeof deep - 1);
    header_refused(deep, 0, "not valid JSON at line 1, column 2049: maximum parsing depth");
    memcpy(deep, "{\"t\":", 5);
    header_refused(deep, 0, "not valid JSON at line 1, column 2053: maximum parsing depth");
}

static void test_dtypes(void **state)
{
    tensor_refused("\"F33\"", "[2]", "[0,8]", "expected a known dtype, found \"F33\"");
    tensor_refused("\"bf16\"", "[4]", "[0,8]", "expected a known dtype, found \"bf16\"");
    tensor_refused("4", "[2]", "[0,8]", "expected a known dtype, found 4");
    tensor_refused("null", "[2]", "[0,8]", "expected a known dtype, found null");
    tensor_refused("\"F32 is what this one says it is, at length, and more of it\"", "[2]",
                   "[0,8]", "expected a known dtype, found \"F32 is what this");
}

static void test_shapes(void **state)
{
    tensor_refused("\"U8\"", "8", "[0,8]", "expected a shape of at most 4 numbers, found 8");
    tensor_refused("\"U8\"", "[1,1,1,1,8]", "[0,8]",
                   "expected a shape of at most 4 numbers, found [1, 1, 1, 1, 8]");
    tensor_refused("\"U8\"", "[-8]", "[0,8]",
                   "expected a shape of whole numbers from 0 to 4294967295, found [-8]");
    tensor_refused("\"U8\"", "[8.0]", "[0,8]", "expected a shape of whole numbers from 0 to");
    tensor_refused("\"U8\"", "[\"8\"]", "[0,8]", "expected a shape of whole numbers from 0 to");
    tensor_refused(
        "\"U8\"", "[4294967296]", "[0,8]",
        "expected a shape of whole numbers from 0 to 4294967295, found [4294967296]");
    tensor_refused(
        "\"U8\"", "[2147483648,2147483648,4,2]", "[0,8]", /* 2^65: would be 0 */
        "expected a shape of fewer than 2^64 elements, found [2147483648, 2147483648");
    tensor_refused(
        "\"F32\"", "[2147483648,2147483648,1]", "[0,8]", /* 2^62 of 4 bytes */
        "expected a shape of fewer than 2^64 bytes, found [2147483648, 2147483648, 1]");
    tensor_refused("\"F32\"", "[3]", "[0,8]",
                   "expected 12 bytes for its dtype and shape, found 8");
    tensor_refused("\"F32\"", "[]", "[0,8]",
                   "expected 4 bytes for its dtype and shape, found 8");
    tensor_refused("\"F32\"", "[0,2]", "[0,8]",
                   "expected 0 bytes for its dtype and shape, found 8");
}

static void test_offsets(void **state)
{
    static const char order[] = "expected data_offsets of two whole numbers in order, found ";
    char sentence[256];
    static const char *const bad[] = {"[8, 0]",  "[-8, 0]",  "[0]",  "[0, 4, 8]",
                                      "\"0,8\"", "[0.5, 8]", "null", "[[0], 8]"};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(sentence, sizeof sentence, "%s%s", order, bad[i]);
        tensor_refused("\"U8\"", "[8]", bad[i], sentence);
    }
    tensor_refused("\"U8\"", "[9]", "[0,9]",
                   "expected data_offsets within the file's 8 bytes, found [0, 9]");
    tensor_refused(
        "\"U8\"", "[8]", "[9223372036854775799,9223372036854775807]",
        "expected data_offsets within the file's 8 bytes, found [9223372036854775799");
}

static void test_gaps_and_overlaps(void **state)
{
#define TENSOR(name, begin, end, size)                                                         \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" #size "],\"data_offsets\":[" #begin "," #end  \
    "]}"
    char sentence[256];
    static const char gap[] = "{" TENSOR("b", 5, 9, 4) "," TENSOR("a", 0, 4, 4) "}";
    static const char overlap[] = "{" TENSOR("b", 3, 9, 6) "," TENSOR("a", 0, 4, 4) "}";
    static const char inside[] = "{" TENSOR("a", 0, 9, 9) "," TENSOR("b", 3, 4, 1) "}";
    static const char late[] = "{" TENSOR("a", 1, 9, 8) "}";
    size_t data = 8 + sizeof gap - 1;

    snprintf(sentence, sizeof sentence,
             "tensor b: expected to begin at byte %zu, the end of a, found %zu (gap)", data + 4,
             data + 5);
    header_refused(gap, 9, sentence);
    snprintf(sentence, sizeof sentence,
             "tensor b: expected to begin at byte %zu, the end of a, found %zu (overlap)",
             data + 4, data + 3);
    header_refused(overlap, 9, sentence);
    snprintf(sentence, sizeof sentence,
             "tensor b: expected to begin at byte %zu, the end of a, found %zu (overlap)",
             data + 9, data + 3);
    header_refused(inside, 9, sentence);
    data = 8 + sizeof late - 1;
    snprintf(sentence, sizeof sentence,
             "tensor a: expected to begin at byte %zu, the end of the header, found %zu (gap)",
             data, data + 1);
    header_refused(late, 9, sentence);
    header_refused("{}", 1, "expected the tensors to end with the file at byte 11, found 10");
}

static void test_names_twice(void **state)
{
    static const char one[] = "{" TENSOR("a", 0, 4, 4) "," TENSOR("x", 4, 8, 4) "}";
    static const char other[] = "{" TENSOR("y", 0, 4, 4) "," TENSOR("x", 4, 8, 4) "}";
    char sentence[1024];

    header_refused("{" TENSOR("a", 0, 4, 4) "," TENSOR("a", 4, 8, 4) "}", 8,
                   "not valid JSON at line 1, column 56: duplicate object key near '\"a\"'");
    header_refused(
        "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"I8\"}}", 0,
        "not valid JSON at line 1, column 26: duplicate object key near '\"dtype\"'");
    shard_write(&scratch, "s.safetensors", one, 8);
    shard_write(&scratch, "t.safetensors", other, 8);
    snprintf(sentence, sizeof sentence,
             "%s/t.safetensors: tensor x: expected in one shard, found also in "
             "%s/s.safetensors",
             scratch.folder, scratch.folder);
    refused(-EINVAL, sentence, NULL);
    assert_int_equal(problems.count, 1);
#undef TENSOR
}

/* All that is wrong is said at once, shard by shard in the order of their names. */
static void test_everything_at_once(void **state)
{
    shard_write(&scratch, "2.safetensors", "{\"x\":1,\"y\":2}", 0);
    shard_write(&scratch, "1.safetensors", "nothing", 0);
    shard_write(&scratch, "3.safetensors", "{}", 0);
    refused(-EINVAL, "/1.safetensors: not valid JSON", "/2.safetensors: tensor x");
    assert_int_equal(problems.count, 3);
    assert_true(strstr(problems.text, "/1.safe") < strstr(problems.text, "/2.safe"));
    assert_non_null(strstr(problems.text, "/2.safetensors: tensor y"));
}

static void test_strange_names_stay_in_the_line(void **state)
{
    header_refused("{\"a\\nb\\u001b\":5}", 0, "tensor a b : expected an object of dtype");
}

static void test_folders(void **state)
{
    struct safetensors *s = NULL;
    char path[2 * SCRATCH_PATH];

    refused(-ENOENT, "expected 1 to 65535 files *.safetensors, found 0", NULL);
    assert_int_equal(mkdir(scratch_path(&scratch, "x.safetensors"), 0700), 0);
    refused(-EINVAL, "x.safetensors: expected a regular file, found something else", NULL);
    assert_int_equal(rmdir(scratch_path(&scratch, "x.safetensors")), 0);
    assert_int_equal(mkfifo(scratch_path(&scratch, "x.safetensors"), 0600), 0);
    refused(-EINVAL, "x.safetensors: expected a regular file, found something else", NULL);
    assert_int_equal(unlink(scratch_path(&scratch, "x.safetensors")), 0);
    assert_int_equal(symlink("nowhere", scratch_path(&scratch, "x.safetensors")), 0);
    refused(-ENOENT, "x.safetensors: cannot be read: No such file or directory", NULL);
    problems_init(&problems);
    snprintf(path, sizeof path, "%s", scratch_path(&scratch, "none"));
    assert_int_equal(safetensors_open(&s, path, &problems), -ENOENT);
    assert_non_null(strstr(problems.text, "/none: cannot be read: No such file or directory"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_cut_at_every_length),
        TEST(test_header_lengths),
        TEST(test_not_a_header),
        TEST(test_dtypes),
        TEST(test_shapes),
        TEST(test_offsets),
        TEST(test_gaps_and_overlaps),
        TEST(test_names_twice),
        TEST(test_everything_at_once),
        TEST(test_strange_names_stay_in_the_line),
        TEST(test_folders),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
