/* The index of good shards: what is found where, by which name, and the digest over them. */
#include "base/safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/base/shard.h"

#define MANY 3000

static const char first[] =
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"matrix\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
    "\"scalar\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
    "\"empty\":{\"dtype\":\"U8\",\"shape\":[0,7],\"data_offsets\":[16,16]},"
    "\"wide\":{\"dtype\":\"I64\",\"shape\":[1,1,2,1],\"data_offsets\":[16,32]}}   ";
static const char second[] =
    "{\"bytes\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,5]}}";

static struct scratch scratch;
static struct problems problems;

static int set_up(void **state)
{
    problems_init(&problems);
    scratch_open(&scratch);
    return 0;
}

static int tear_down(void **state)
{
    scratch_close(&scratch);
    return 0;
}

static struct safetensors *open_good(void)
{
    struct safetensors *s = NULL;
    int error = safetensors_open(&s, scratch.folder, &problems);

    if (error)
        fail_msg("%d: %s", error, problems.text);
    assert_int_equal(problems.count, 0);
    return s;
}

static void test_two_shards(void **state)
{
    char path[2 * SCRATCH_PATH];

    shard_write(&scratch, "b.safetensors", second, 5);
    shard_write(&scratch, "a.safetensors", first, 32);
    shard_write(&scratch, ".hidden.safetensors", "not json", 0);
    scratch_write(&scratch, "config.json", "{}", 2);
    struct safetensors *s = open_good();

    assert_int_equal(safetensors_shards(s), 2);
    assert_int_equal(safetensors_tensors(s), 5);
    snprintf(path, sizeof path, "%s/a.safetensors", scratch.folder);
    assert_string_equal(safetensors_path(s, 0), path);
    const struct safetensors_tensor *t = safetensors_find(s, "matrix");
    assert_non_null(t);
    assert_int_equal(t->offset, 8 + strlen(first) + 4);
    assert_int_equal(t->bytes, 12);
    assert_int_equal(t->dims, 2);
    assert_int_equal(t->shape[0], 2);
    assert_int_equal(t->shape[1], 3);
    assert_int_equal(t->dtype, SAFETENSORS_BF16);
    assert_int_equal(t->shard, 0);
    t = safetensors_find(s, "bytes");
    assert_int_equal(t->offset, 8 + strlen(second));
    assert_int_equal(t->dtype, SAFETENSORS_U8);
    assert_int_equal(t->shard, 1);
    t = safetensors_find(s, "scalar");
    assert_int_equal(t->dims, 0);
    assert_int_equal(t->bytes, 4);
    assert_int_equal(t->dtype, SAFETENSORS_F32);
    assert_int_equal(safetensors_find(s, "empty")->bytes, 0);
    assert_int_equal(safetensors_find(s, "wide")->dtype, SAFETENSORS_OTHER);
    assert_null(safetensors_find(s, "matri"));
    assert_null(safetensors_find(s, ""));
    assert_null(safetensors_find(s, "__metadata__"));
    safetensors_close(s);
    safetensors_close(NULL);
}

static void add_tensor(char *json, size_t room, int i)
{
    size_t used = strlen(json);

    snprintf(json + used, room - used,
             "%c\"layers.%d.w\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[%d,%d]}",
             i == 0 ? '{' : ',', i, 3 * i, 3 * i + 3);
}

static void test_many_tensors(void **state)
{
    size_t room = MANY * 100;
    char *json = calloc(1, room), name[64];

    for (int i = 0; i < MANY; i++)
        add_tensor(json, room, i);
    strcat(json, "}");
    shard_write(&scratch, "many.safetensors", json, 3 * MANY);
    struct safetensors *s = open_good();
    assert_int_equal(safetensors_tensors(s), MANY);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "layers.%d.w", i);
        const struct safetensors_tensor *t = safetensors_find(s, name);
        assert_non_null(t);
        assert_int_equal(t->offset, 8 + strlen(json) + 3 * (size_t)i);
    }
    assert_null(safetensors_find(s, "layers.3000.w"));
    safetensors_close(s);
    free(json);
}

static void digest_of(const char *name, const char *json, size_t data_bytes, uint8_t digest[16])
{
    struct scratch before = scratch;

    scratch_open(&scratch);
    shard_write(&scratch, "a.safetensors", second, 5);
    shard_write(&scratch, name, json, data_bytes);
    struct safetensors *s = open_good();
    safetensors_digest(s, digest);
    safetensors_close(s);
    scratch_close(&scratch);
    scratch = before;
}

static void test_the_digest_is_of_names_and_headers(void **state)
{
    static const char spaced[] =
        "{\"other\":{\"dtype\":\"U8\",\"shape\":[5], \"data_offsets\":[0,5]}}";
    static const char dense[] =
        "{\"other\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,5]} }";
    uint8_t digest[16], again[16], renamed[16], changed[16];

    digest_of("b.safetensors", dense, 5, digest);
    digest_of("b.safetensors", dense, 5, again);
    digest_of("c.safetensors", dense, 5, renamed);
    digest_of("b.safetensors", spaced, 5, changed);
    assert_memory_equal(digest, again, 16);
    assert_memory_not_equal(digest, renamed, 16);
    assert_memory_not_equal(digest, changed, 16);
}

static void test_dtype_names(void **state)
{
    assert_string_equal(safetensors_dtype_name(SAFETENSORS_F32), "F32");
    assert_string_equal(safetensors_dtype_name(SAFETENSORS_BF16), "BF16");
    assert_string_equal(safetensors_dtype_name(SAFETENSORS_U8), "U8");
    assert_string_equal(safetensors_dtype_name(SAFETENSORS_OTHER), "other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_two_shards, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_tensors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_digest_is_of_names_and_headers, set_up,
                                        tear_down),
        cmocka_unit_test(test_dtype_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
