/* Small files: bounds, kinds, and that a reader never sees half of one. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/thread.h"
#include "tests/base/scratch.h"

#define VERSION_BYTES 20000

static struct scratch scratch;

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

static void test_read_whole(void **state)
{
    char *bytes = NULL;
    size_t length = 0;

    scratch_write(&scratch, "f", "ab\0cd", 5);
    assert_int_equal(file_read(scratch_path(&scratch, "f"), 5, &bytes, &length), 0);
    assert_int_equal(length, 5);
    assert_memory_equal(bytes, "ab\0cd", 6);
    free(bytes);
    scratch_write(&scratch, "f", "", 0);
    assert_int_equal(file_read(scratch_path(&scratch, "f"), 0, &bytes, &length), 0);
    assert_int_equal(length, 0);
    assert_int_equal(bytes[0], 0);
    free(bytes);
}

static void test_read_refuses(void **state)
{
    char *bytes = NULL;
    size_t length = 77;

    scratch_write(&scratch, "f", "abcdef", 6);
    assert_int_equal(file_read(scratch_path(&scratch, "f"), 5, &bytes, &length), -EFBIG);
    assert_int_equal(file_read(scratch_path(&scratch, "none"), 5, &bytes, &length), -ENOENT);
    assert_int_equal(file_read(scratch.folder, 5, &bytes, &length), -EINVAL);
    assert_int_equal(mkfifo(scratch_path(&scratch, "fifo"), 0600), 0);
    assert_int_equal(file_read(scratch_path(&scratch, "fifo"), 5, &bytes, &length), -EINVAL);
    assert_null(bytes);
    assert_int_equal(length, 77);
}

/* Files of /proc say they are empty. */
static void test_read_file_without_a_size(void **state)
{
    char *bytes = NULL;
    size_t length;

    assert_int_equal(file_read("/proc/self/status", 65536, &bytes, &length), 0);
    assert_true(length > 100);
    assert_int_equal(strlen(bytes), length);
    free(bytes);
    bytes = NULL;
    assert_int_equal(file_read("/proc/self/status", 100, &bytes, &length), -EFBIG);
    assert_null(bytes);
}

static size_t count_files(void)
{
    DIR *folder = opendir(scratch.folder);
    size_t count = 0;

    for (struct dirent *e; (e = readdir(folder));)
        count += e->d_name[0] != '.';
    closedir(folder);
    return count;
}

static void test_write_mode_and_failure(void **state)
{
    struct stat st;
    mode_t mask = umask(077);

    assert_int_equal(file_write(scratch_path(&scratch, "f"), "secret", 6, 0644), 0);
    umask(mask);
    assert_int_equal(stat(scratch_path(&scratch, "f"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    assert_int_equal(file_write(scratch_path(&scratch, "f"), "again", 5, 0600), 0);
    assert_int_equal(stat(scratch_path(&scratch, "f"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, 5);
    assert_int_equal(file_write(scratch_path(&scratch, "none/f"), "x", 1, 0600), -ENOENT);
    assert_int_equal(mkdir(scratch_path(&scratch, "folder"), 0700), 0);
    assert_int_equal(file_write(scratch_path(&scratch, "folder"), "x", 1, 0600), -EISDIR);
    assert_int_equal(count_files(), 2); /* no temporary file is left */
}

static atomic_bool writing;

static void write_versions(void *context)
{
    static char bytes[VERSION_BYTES];
    const char *path = context;

    for (int version = 1; version < 25; version++) {
        memset(bytes, version, sizeof bytes);
        file_write(path, bytes, sizeof bytes, 0600);
    }
    atomic_store(&writing, false);
}

static void test_a_reader_sees_whole_versions(void **state)
{
    static char path[2 * SCRATCH_PATH], first[VERSION_BYTES];
    struct thread writer;
    char *bytes;
    size_t length;

    strcpy(path, scratch_path(&scratch, "f"));
    assert_int_equal(file_write(path, first, sizeof first, 0600), 0);
    atomic_store(&writing, true);
    assert_int_equal(thread_start(&writer, "writer", write_versions, path), 0);
    while (atomic_load(&writing)) {
        assert_int_equal(file_read(path, VERSION_BYTES, &bytes, &length), 0);
        assert_int_equal(length, VERSION_BYTES);
        assert_memory_equal(bytes, bytes + 1, VERSION_BYTES - 1);
        free(bytes);
    }
    thread_join(&writer);
}

static void test_pread(void **state)
{
    char bytes[8] = "";

    scratch_write(&scratch, "f", "0123456789", 10);
    int fd = open(scratch_path(&scratch, "f"), O_RDONLY);
    assert_int_equal(file_pread(fd, bytes, 4, 6), 0);
    assert_memory_equal(bytes, "6789", 4);
    assert_int_equal(file_pread(fd, bytes, 4, 7), -ENODATA);
    assert_int_equal(file_pread(fd, bytes, 0, 99), 0);
    close(fd);
    assert_int_equal(file_pread(fd, bytes, 4, 0), -EBADF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_read_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_read_refuses, set_up, tear_down),
        cmocka_unit_test(test_read_file_without_a_size),
        cmocka_unit_test_setup_teardown(test_write_mode_and_failure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_reader_sees_whole_versions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pread, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
