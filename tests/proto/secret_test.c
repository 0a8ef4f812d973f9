/* The secret's file: what is taken, what is refused and how that is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/secret.h"

static char folder[] = "/tmp/kapok-secret-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/secret", folder);
    return 0;
}

static int remove_folder(void **state)
{
    unlink(path);
    return rmdir(folder);
}

static int load(const char *file, uint8_t secret[SECRET_BYTES], char *ret_text, size_t size)
{
    struct problems p;
    problems_init(&p);
    int r = secret_load(file, secret, &p);
    snprintf(ret_text, size, "%.500s", p.text);
    return r;
}

static void refused(const char *file, int error, const char *sentence)
{
    uint8_t secret[SECRET_BYTES] = {1, 2, 3}, untouched[SECRET_BYTES] = {1, 2, 3};
    char text[512];
    assert_int_equal(load(file, secret, text, sizeof text), error);
    if (!strstr(text, sentence) || !strstr(text, file))
        fail_msg("'%s' and the file are not in: %s", sentence, text);
    assert_memory_equal(secret, untouched, sizeof secret);
}

static void a_made_secret_is_read_back(void **state)
{
    uint8_t first[SECRET_BYTES], again[SECRET_BYTES], second[SECRET_BYTES];
    char text[512];
    struct problems p;
    struct stat st;
    problems_init(&p);
    assert_int_equal(secret_make(path, &p), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(load(path, first, text, sizeof text), 0);
    assert_int_equal(load(path, again, text, sizeof text), 0);
    assert_true(secret_equal(first, again));
    assert_int_equal(secret_make(path, &p), 0); /* another one, over it */
    assert_int_equal(load(path, second, text, sizeof text), 0);
    assert_false(secret_equal(first, second));
}

static void a_secret_others_can_read_is_refused(void **state)
{
    static const mode_t modes[] = {0640, 0604, 0620, 0602, 0610, 0601, 0644};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        refused(path, -EINVAL, "expected mode 0600");
    }
    assert_int_equal(chmod(path, 0400), 0);
    uint8_t secret[SECRET_BYTES];
    char text[512];
    assert_int_equal(load(path, secret, text, sizeof text), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static void a_secret_of_another_length_is_refused(void **state)
{
    static const long lengths[] = {0, 31, 33, 1 << 20};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        assert_int_equal(truncate(path, lengths[i]), 0);
        refused(path, -EINVAL, "expected 32 bytes");
    }
}

static void what_is_no_file_is_refused(void **state)
{
    refused("/nonexistent/secret", -ENOENT, "No such file");
    refused(folder, -EINVAL, "expected a regular file");
    refused("/dev/null", -EINVAL, "expected a regular file");
}

static void every_byte_counts(void **state)
{
    uint8_t a[SECRET_BYTES] = {0}, b[SECRET_BYTES];
    for (unsigned i = 0; i < SECRET_BYTES * 8; i++) {
        memcpy(b, a, sizeof b);
        b[i / 8] ^= (uint8_t)(1U << i % 8);
        assert_false(secret_equal(a, b));
    }
    assert_true(secret_equal(a, a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_made_secret_is_read_back),
        cmocka_unit_test(a_secret_others_can_read_is_refused),
        cmocka_unit_test(a_secret_of_another_length_is_refused),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(every_byte_counts),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
