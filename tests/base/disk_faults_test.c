/*
 * Disk reads on a kernel that fails: the linker puts this file's io_submit and io_getevents in
 * front of libaio's (--wrap), and a script says what the next ones do. Nothing is there for it
 * in the code under test.
 */
#include "base/disk.h"

#include <errno.h>
#include <libaio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/base/scratch.h"

#define FILE_BYTES 50000

int __real_io_submit(io_context_t context, long count, struct iocb **batch);
int __wrap_io_submit(io_context_t context, long count, struct iocb **batch);
int __real_io_getevents(io_context_t context, long least, long most, struct io_event *news,
                        struct timespec *wait);
int __wrap_io_getevents(io_context_t context, long least, long most, struct io_event *news,
                        struct timespec *wait);

/* What the next calls and results become; 0 leaves one as it is. */
static int submit_errors[8], getevents_errors[8];
static long results[8]; /* negative: that error; positive: at most so many bytes */
static size_t submits, getevents_calls, result_count;
static bool one_by_one; /* io_submit takes only the first of a batch */

static unsigned char content[FILE_BYTES];
static struct scratch scratch;
static struct disk *d;
static int fd;

int __wrap_io_submit(io_context_t context, long count, struct iocb **batch)
{
    int error = submits < 8 ? submit_errors[submits++] : 0;

    return error ? error : __real_io_submit(context, one_by_one ? 1 : count, batch);
}

int __wrap_io_getevents(io_context_t context, long least, long most, struct io_event *news,
                        struct timespec *wait)
{
    if (least > 0 && getevents_calls < 8 && getevents_errors[getevents_calls++])
        return getevents_errors[getevents_calls - 1];
    int count = __real_io_getevents(context, least, most, news, wait);
    for (int i = 0; i < count; i++) {
        long change = result_count < 8 ? results[result_count++] : 0;
        if (change < 0 || (change > 0 && (long)news[i].res > change))
            news[i].res = (unsigned long)change;
    }
    return count;
}

static int set_up(void **state)
{
    memset(submit_errors, 0, sizeof submit_errors);
    memset(getevents_errors, 0, sizeof getevents_errors);
    memset(results, 0, sizeof results);
    submits = getevents_calls = result_count = 0;
    one_by_one = false;
    srandom(2);
    for (size_t i = 0; i < FILE_BYTES; i++)
        content[i] = (unsigned char)random();
    scratch_open(&scratch);
    scratch_write(&scratch, "data", content, FILE_BYTES);
    assert_int_equal(disk_file(scratch_path(&scratch, "data"), true, &fd), 0);
    return disk_open(&d, 4);
}

static int tear_down(void **state)
{
    disk_close(d);
    close(fd);
    scratch_close(&scratch);
    return 0;
}

static struct disk_read make_read(uint64_t offset, size_t length)
{
    return (struct disk_read){.fd = fd,
                              .offset = offset,
                              .length = length,
                              .buffer = aligned_alloc(DISK_PAGE, disk_span(offset, length))};
}

static void check_and_free(struct disk_read *r)
{
    assert_int_equal(r->error, 0);
    assert_memory_equal((char *)r->buffer + r->skip, content + r->offset, r->length);
    free(r->buffer);
}

static void test_one_eio_is_retried(void **state)
{
    struct disk_read r = make_read(100, 20000);

    results[0] = -EIO;
    assert_int_equal(disk_read_now(d, &r), 0);
    assert_int_equal(result_count, 2);
    check_and_free(&r);
}

static void test_two_eio_are_that_reads_error(void **state)
{
    struct disk_read bad = make_read(100, 20000), good = make_read(30000, 10);

    results[0] = results[1] = -EIO;
    assert_int_equal(disk_read_now(d, &bad), -EIO);
    assert_int_equal(result_count, 2);
    assert_int_equal(disk_read_now(d, &good), 0);
    check_and_free(&good);
    result_count = 0; /* a read that is submitted again may be retried again */
    results[1] = 0;
    assert_int_equal(disk_read_now(d, &bad), 0);
    check_and_free(&bad);
}

static void test_other_errors_are_not_retried(void **state)
{
    struct disk_read r = make_read(0, 10);

    results[0] = -EREMOTEIO;
    assert_int_equal(disk_read_now(d, &r), -EREMOTEIO);
    assert_int_equal(result_count, 1);
    free(r.buffer);
}

static void test_short_reads_go_on(void **state)
{
    struct disk_read r = make_read(5000, 40000);

    results[0] = 4096;
    results[1] = 10000; /* not whole pages: goes on at the last whole one */
    results[2] = 8192;
    results[3] = 1 << 14;
    assert_int_equal(disk_read_now(d, &r), 0);
    assert_true(result_count >= 5);
    assert_true(r.fetched > disk_span(5000, 40000)); /* one page in part came twice */
    check_and_free(&r);
}

static void test_enough_is_enough(void **state)
{
    struct disk_read r = make_read(100, 200); /* the rest of its page is not waited for */

    results[0] = 300;
    assert_int_equal(disk_read_now(d, &r), 0);
    assert_int_equal(result_count, 1);
    check_and_free(&r);
}

static void test_eio_after_a_short_read(void **state)
{
    struct disk_read r = make_read(0, 30000);

    results[0] = 9000;
    results[1] = -EIO;
    assert_int_equal(disk_read_now(d, &r), 0);
    check_and_free(&r);
}

static void test_interrupted_and_full(void **state)
{
    struct disk_read *r, a = make_read(1, 9000), b = make_read(2, 9000);

    submit_errors[0] = submit_errors[1] = -EAGAIN;
    submit_errors[2] = -EINTR;
    getevents_errors[0] = getevents_errors[1] = -EINTR;
    results[0] = -EAGAIN;
    results[1] = -EINTR;
    disk_submit(d, &a);
    disk_submit(d, &b);
    assert_int_equal(disk_pending(d), 2);
    for (int i = 0; i < 2; i++) {
        r = disk_reap(d, -1);
        assert_true(r == &a || r == &b);
        check_and_free(r);
    }
    assert_true(submits > 3 && getevents_calls > 2);
}

static void test_a_full_kernel_does_not_stop_the_clock(void **state)
{
    struct disk_read r = make_read(1, 9000);

    for (int i = 0; i < 8; i++)
        submit_errors[i] = -EAGAIN;
    disk_submit(d, &r);
    assert_null(disk_reap(d, 0));
    assert_null(disk_reap(d, 1e-9));
    assert_int_equal(disk_pending(d), 1);
    assert_ptr_equal(disk_reap(d, -1), &r);
    check_and_free(&r);
}

static void test_a_refused_one_does_not_stop_the_others(void **state)
{
    struct disk_read *r, read[12];
    int refused = 0;

    one_by_one = true;
    submit_errors[2] = -EBADF;
    for (int i = 0; i < 12; i++) {
        read[i] = make_read((uint64_t)i * 4000, 4000);
        disk_submit(d, &read[i]);
    }
    for (int i = 0; i < 12; i++) {
        r = disk_reap(d, -1);
        assert_non_null(r);
        if (r->error) {
            assert_int_equal(r->error, -EBADF);
            refused++;
            free(r->buffer);
        } else {
            check_and_free(r);
        }
    }
    assert_int_equal(refused, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_one_eio_is_retried),
        TEST(test_two_eio_are_that_reads_error),
        TEST(test_other_errors_are_not_retried),
        TEST(test_short_reads_go_on),
        TEST(test_enough_is_enough),
        TEST(test_eio_after_a_short_read),
        TEST(test_interrupted_and_full),
        TEST(test_a_full_kernel_does_not_stop_the_clock),
        TEST(test_a_refused_one_does_not_stop_the_others),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
