/* A checkpoint folder: opened, its digest, tensors that are not what they should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "proto/checkpoint.h"
#include "tests/base/scratch.h"
#include "tests/base/shard.h"
#include "tests/proto/tiny.h"

static const char header[] =
    "{\"a\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]},"
    "\"b\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[12,28]}}";

static struct scratch scratch;
static struct problems problems;

static int set_up(void **state)
{
    problems_init(&problems);
    scratch_open(&scratch);
    scratch_write(&scratch, "config.json", tiny_config, strlen(tiny_config));
    shard_write(&scratch, "model-00001-of-00001.safetensors", header, 28);
    return 0;
}

static int tear_down(void **state)
{
    scratch_close(&scratch);
    return 0;
}

static void digest_now(char ret_text[33])
{
    struct checkpoint c;
    if (checkpoint_open(&c, scratch.folder, &problems))
        fail_msg("%s", problems.text);
    checkpoint_digest_text(c.digest, ret_text);
    checkpoint_close(&c);
}

static void a_folder_is_opened(void **state)
{
    struct checkpoint c;
    const uint32_t a[] = {2, 3}, b[] = {4};
    assert_int_equal(checkpoint_open(&c, scratch.folder, &problems), 0);
    assert_int_equal(c.shape.hidden, 128);
    assert_string_equal(c.folder, scratch.folder);
    assert_non_null(checkpoint_tensor(&c, "a", SAFETENSORS_BF16, a, 2, &problems));
    assert_non_null(checkpoint_tensor(&c, "b", SAFETENSORS_F32, b, 1, &problems));
    assert_int_equal(problems.count, 0);
    checkpoint_close(&c);
}

static void wrong_tensors_are_named(void **state)
{
    struct checkpoint c;
    const uint32_t a[] = {3, 2};
    assert_int_equal(checkpoint_open(&c, scratch.folder, &problems), 0);
    assert_null(checkpoint_tensor(&c, "missing", SAFETENSORS_BF16, a, 2, &problems));
    assert_null(checkpoint_tensor(&c, "a", SAFETENSORS_BF16, a, 2, &problems));
    assert_null(checkpoint_tensor(&c, "a", SAFETENSORS_BF16, a, 1, &problems));
    assert_null(checkpoint_tensor(&c, "b", SAFETENSORS_BF16, a, 1, &problems));
    assert_int_equal(problems.count, 4);
    assert_non_null(strstr(problems.text, "there is no tensor missing"));
    assert_non_null(strstr(problems.text, "a: expected BF16 [3, 2], found BF16 [2, 3]"));
    assert_non_null(strstr(problems.text, "b: expected BF16 [3], found F32 [4]"));
    assert_non_null(strstr(problems.text, "model-00001-of-00001.safetensors"));
    checkpoint_close(&c);
}

/* It is over config.json and the headers, whatever the tensors hold. */
static void the_digest_tells_models_apart(void **state)
{
    char first[33], second[33];
    uint8_t data[28] = {1, 2, 3};
    char bytes[sizeof header + 28];
    digest_now(first);
    assert_int_equal(strlen(first), 32);
    memcpy(bytes, header, sizeof header - 1);
    memcpy(bytes + sizeof header - 1, data, sizeof data);
    shard_write_raw(&scratch, "model-00001-of-00001.safetensors", sizeof header - 1, bytes,
                    sizeof header - 1 + sizeof data);
    digest_now(second);
    assert_string_equal(first, second);
    shard_write(&scratch, "model-00002-of-00002.safetensors",
                "{\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
    digest_now(second);
    assert_string_not_equal(first, second);
    unlink(scratch_path(&scratch, "model-00002-of-00002.safetensors"));
    digest_now(second);
    assert_string_equal(first, second);
    char config[8192];
    size_t length = strlen(tiny_config);
    memcpy(config, tiny_config, length);
    config[length++] = '\n';
    scratch_write(&scratch, "config.json", config, length);
    digest_now(second);
    assert_string_not_equal(first, second);
}

static void what_is_missing_is_named(void **state)
{
    struct checkpoint c;
    unlink(scratch_path(&scratch, "model-00001-of-00001.safetensors"));
    assert_true(checkpoint_open(&c, scratch.folder, &problems) < 0);
    assert_non_null(strstr(problems.text, scratch.folder));
    problems_init(&problems);
    unlink(scratch_path(&scratch, "config.json"));
    assert_int_equal(checkpoint_open(&c, scratch.folder, &problems), -ENOENT);
    assert_non_null(strstr(problems.text, "config.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_folder_is_opened, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_tensors_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_digest_tells_models_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_missing_is_named, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
