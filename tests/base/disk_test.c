/* Disk reads against pread: random ranges, the end of a file, and what cannot be read. */
#include "base/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/base/scratch.h"

#define FILE_BYTES ((size_t)1000003) /* no multiple of a page */
#define LONGEST    ((size_t)70000)
#define READS      160
#define SKIPPED    77

static struct scratch scratch;
static unsigned char content[FILE_BYTES];
static int fd = -1;

static int set_up(void **state)
{
    srandom(1);
    for (size_t i = 0; i < FILE_BYTES; i++)
        content[i] = (unsigned char)random();
    scratch_open(&scratch);
    scratch_write(&scratch, "data", content, FILE_BYTES);
    return 0;
}

static int tear_down(void **state)
{
    if (fd >= 0)
        close(fd);
    scratch_close(&scratch);
    return 0;
}

static struct disk_read make_read(uint64_t offset, size_t length)
{
    struct disk_read r = {.fd = fd, .offset = offset, .length = length};
    size_t span = disk_span(offset, length);

    r.buffer = aligned_alloc(DISK_PAGE, span);
    assert_non_null(r.buffer);
    memset(r.buffer, 0xee, span);
    return r;
}

static void check_read(const struct disk_read *r)
{
    assert_int_equal(r->error, 0);
    assert_int_equal(r->skip, r->offset % DISK_PAGE);
    assert_memory_equal((char *)r->buffer + r->skip, content + r->offset, r->length);
    assert_true(r->fetched >= r->length);
    assert_true(r->fetched <= disk_span(r->offset, r->length));
    assert_true(r->started > 0 && r->ended >= r->started);
}

static void random_reads(unsigned depth)
{
    static struct disk_read read[READS];
    static bool seen[READS];
    struct disk *d;

    memset(seen, 0, sizeof seen);
    assert_int_equal(disk_open(&d, depth), 0);
    for (int i = 0; i < READS; i++) {
        size_t offset = (size_t)random() % FILE_BYTES;
        size_t most = FILE_BYTES - offset < LONGEST ? FILE_BYTES - offset : LONGEST;
        read[i] = make_read(offset, 1 + (size_t)random() % most);
        read[i].owner = &seen[i];
        disk_submit(d, &read[i]);
    }
    assert_int_equal(disk_pending(d), READS);
    for (int i = 0; i < READS; i++) {
        struct disk_read *r = disk_reap(d, -1);
        assert_non_null(r);
        assert_false(*(bool *)r->owner);
        *(bool *)r->owner = true;
        check_read(r);
        free(r->buffer);
    }
    assert_int_equal(disk_pending(d), 0);
    assert_null(disk_reap(d, -1));
    disk_close(d);
}

static void test_random_one_at_a_time(void **state)
{
    random_reads(1);
}

static void test_random_many_in_flight(void **state)
{
    random_reads(32);
}

static void test_more_than_one_batch(void **state)
{
    random_reads(READS);
}

/* Every last range of the file, and ranges that end beyond it. */
static void test_the_end_of_the_file(void **state)
{
    static const size_t lengths[] = {1, 2, 575, 576, 577, 4095, 4096, 4097, 9000};
    struct disk *d;

    assert_int_equal(disk_open(&d, 4), 0);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct disk_read r = make_read(FILE_BYTES - lengths[i], lengths[i]);
        assert_int_equal(disk_read_now(d, &r), 0);
        check_read(&r);
        free(r.buffer);
        r = make_read(FILE_BYTES - lengths[i], lengths[i] + 1);
        assert_int_equal(disk_read_now(d, &r), -ENODATA);
        assert_int_equal(r.error, -ENODATA);
        free(r.buffer);
    }
    struct disk_read r = make_read(FILE_BYTES + 100000, 10);
    assert_int_equal(disk_read_now(d, &r), -ENODATA);
    free(r.buffer);
    disk_close(d);
}

static void test_a_file_of_whole_pages(void **state)
{
    int other;
    struct disk *d;

    scratch_write(&scratch, "pages", content, 2 * DISK_PAGE);
    assert_int_equal(disk_open(&d, 4), 0);
    assert_int_equal(disk_file(scratch_path(&scratch, "pages"), false, &other), 0);
    struct disk_read r = make_read(DISK_PAGE, DISK_PAGE);
    r.fd = other;
    assert_int_equal(disk_read_now(d, &r), 0);
    check_read(&r);
    free(r.buffer);
    r = make_read(DISK_PAGE, DISK_PAGE + 1);
    r.fd = other;
    assert_int_equal(disk_read_now(d, &r), -ENODATA);
    free(r.buffer);
    close(other);
    disk_close(d);
}

static void test_ranges_that_cannot_be(void **state)
{
    struct disk *d;

    assert_int_equal(disk_open(&d, 4), 0);
    struct disk_read r = make_read(0, 1);
    static const uint64_t offsets[] = {UINT64_MAX, INT64_MAX, INT64_MAX - DISK_PAGE};
    for (size_t i = 0; i < 3; i++) {
        r.offset = offsets[i];
        r.length = 1;
        assert_int_equal(disk_read_now(d, &r), -EINVAL);
    }
    r.offset = 0;
    r.length = 0;
    assert_int_equal(disk_read_now(d, &r), -EINVAL);
    r.length = SIZE_MAX;
    disk_submit(d, &r);
    assert_int_equal(disk_pending(d), 1);
    assert_ptr_equal(disk_reap(d, 0), &r);
    assert_int_equal(r.error, -EINVAL);
    free(r.buffer);
    disk_close(d);
}

static void test_a_closed_file_is_that_reads_error(void **state)
{
    struct disk *d;
    struct disk_read *r, good = make_read(5, 10), bad = make_read(5, 10),
                         last = make_read(FILE_BYTES - 1, 1);
    int other = dup(fd);

    close(other);
    bad.fd = other;
    assert_int_equal(disk_open(&d, 1), 0);
    disk_submit(d, &good);
    disk_submit(d, &bad);
    disk_submit(d, &last);
    for (int i = 0; i < 3; i++) {
        r = disk_reap(d, -1);
        assert_non_null(r);
        if (r == &bad)
            assert_int_equal(r->error, -EBADF);
        else
            check_read(r);
        free(r->buffer);
    }
    disk_close(d);
}

static void test_what_is_not_a_file(void **state)
{
    int other = 99;

    assert_int_equal(disk_file(scratch.folder, false, &other), -EISDIR);
    assert_int_equal(disk_file(scratch_path(&scratch, "none"), false, &other), -ENOENT);
    assert_int_equal(disk_file("/dev/null", false, &other), -ENOTBLK);
    assert_int_equal(mkfifo(scratch_path(&scratch, "fifo"), 0600), 0);
    assert_int_equal(disk_file(scratch_path(&scratch, "fifo"), false, &other), -ENOTBLK);
    assert_int_equal(other, 99);
}

static void test_buffered(void **state)
{
    int other;
    struct disk *d;

    assert_int_equal(disk_open(&d, 4), 0);
    assert_int_equal(disk_file(scratch_path(&scratch, "data"), true, &other), 0);
    assert_int_equal(fcntl(other, F_GETFL) & O_DIRECT, 0);
    assert_int_equal(fcntl(fd, F_GETFL) & O_DIRECT, O_DIRECT);
    struct disk_read r = make_read(FILE_BYTES - 5000, 5000);
    r.fd = other;
    assert_int_equal(disk_read_now(d, &r), 0);
    check_read(&r);
    free(r.buffer);
    close(other);
    disk_close(d);
}

/* A read that is waited for does not lose the others. */
static void test_now_among_others(void **state)
{
    struct disk *d;
    struct disk_read a = make_read(1, LONGEST), b = make_read(2, LONGEST),
                     now = make_read(3, 9);

    assert_int_equal(disk_open(&d, 2), 0);
    disk_submit(d, &a);
    disk_submit(d, &b);
    assert_int_equal(disk_read_now(d, &now), 0);
    check_read(&now);
    assert_int_equal(disk_pending(d), 2);
    struct disk_read *first = disk_reap(d, -1), *second = disk_reap(d, 5);
    assert_true((first == &a && second == &b) || (first == &b && second == &a));
    check_read(&a);
    check_read(&b);
    free(a.buffer);
    free(b.buffer);
    free(now.buffer);
    disk_close(d);
}

static void test_closing_waits(void **state)
{
    struct disk *d;
    struct disk_read read[8];

    assert_int_equal(disk_open(&d, 4), 0);
    for (int i = 0; i < 8; i++) {
        read[i] = make_read((uint64_t)i * LONGEST, LONGEST);
        disk_submit(d, &read[i]);
    }
    disk_close(d);
    for (int i = 0; i < 8; i++)
        free(read[i].buffer); /* nothing is written to them any more */
    disk_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_one_at_a_time),
        cmocka_unit_test(test_random_many_in_flight),
        cmocka_unit_test(test_more_than_one_batch),
        cmocka_unit_test(test_the_end_of_the_file),
        cmocka_unit_test(test_a_file_of_whole_pages),
        cmocka_unit_test(test_ranges_that_cannot_be),
        cmocka_unit_test(test_a_closed_file_is_that_reads_error),
        cmocka_unit_test(test_what_is_not_a_file),
        cmocka_unit_test(test_buffered),
        cmocka_unit_test(test_now_among_others),
        cmocka_unit_test(test_closing_waits),
    };

    set_up(NULL);
    if (disk_file(scratch_path(&scratch, "data"), false, &fd) == -EINVAL) {
        print_message("skipped: the file system of the build folder refuses O_DIRECT\n");
        tear_down(NULL);
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
