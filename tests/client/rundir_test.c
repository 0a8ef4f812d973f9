/* The run directory: made private, held by one, cleaned up. */
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

#include "client/rundir.h"

static char parent[] = "/tmp/kapok-rundir-XXXXXX";
static char path[64];

static int make_parent(void **state)
{
    if (!mkdtemp(parent))
        return -1;
    snprintf(path, sizeof path, "%s/run", parent);
    return 0;
}

static int remove_parent(void **state)
{
    char file[80];
    snprintf(file, sizeof file, "%s/lock", path);
    unlink(file);
    rmdir(path);
    return rmdir(parent);
}

static void it_is_made_private(void **state)
{
    struct rundir d;
    struct problems p;
    struct stat st;
    problems_init(&p);
    rundir_name(&d, path);
    assert_int_equal(rundir_open(&d, &p), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    rundir_close(&d);
}

static void one_pipeline_holds_it(void **state)
{
    struct rundir first, second;
    struct problems p;
    problems_init(&p);
    rundir_name(&first, path);
    rundir_name(&second, path);
    assert_int_equal(rundir_open(&first, &p), 0);
    assert_int_equal(rundir_open(&second, &p), -EBUSY);
    assert_non_null(strstr(p.text, path));
    assert_non_null(strstr(p.text, "another pipeline runs there"));
    rundir_close(&first);
    problems_init(&p);
    assert_int_equal(rundir_open(&second, &p), 0);
    rundir_close(&second);
}

/* A second `up` that is refused must leave the first one's url where it is. */
static void who_is_refused_removes_nothing(void **state)
{
    struct rundir first, second;
    struct problems p;
    char url[64];
    problems_init(&p);
    rundir_name(&first, path);
    rundir_name(&second, path);
    assert_int_equal(rundir_open(&first, &p), 0);
    assert_int_equal(rundir_write(&first, "url", "http://127.0.0.1:8000\n"), 0);
    assert_int_equal(rundir_open(&second, &p), -EBUSY);
    rundir_close(&second);
    assert_int_equal(rundir_url(&first, url, sizeof url), 0);
    assert_string_equal(url, "http://127.0.0.1:8000");
    rundir_close(&first);
    assert_int_equal(rundir_url(&first, url, sizeof url), -ENOENT);
}

static void a_directory_others_can_write_is_refused(void **state)
{
    struct rundir d;
    struct problems p;
    problems_init(&p);
    rundir_name(&d, path);
    assert_int_equal(chmod(path, 0770), 0);
    assert_int_equal(rundir_open(&d, &p), -EPERM);
    assert_non_null(strstr(p.text, "mode 0770"));
    assert_int_equal(chmod(path, 0700), 0);
    rundir_name(&d, "/dev/null");
    problems_init(&p);
    assert_int_equal(rundir_open(&d, &p), -EPERM);
    rundir_name(&d, "/nonexistent/run");
    problems_init(&p);
    assert_int_equal(rundir_open(&d, &p), -ENOENT);
    assert_non_null(strstr(p.text, "/nonexistent/run"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_made_private),
        cmocka_unit_test(one_pipeline_holds_it),
        cmocka_unit_test(who_is_refused_removes_nothing),
        cmocka_unit_test(a_directory_others_can_write_is_refused),
    };
    return cmocka_run_group_tests(tests, make_parent, remove_parent);
}
