/* The tests' folder and child processes. What fails here ends the test. */
#include "tests/base/scratch.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

void scratch_open(struct scratch *s)
{
    snprintf(s->folder, sizeof s->folder, "base_test_XXXXXX");
    assert_non_null(mkdtemp(s->folder));
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    return remove(path);
}

void scratch_close(struct scratch *s)
{
    assert_int_equal(nftw(s->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

const char *scratch_path(struct scratch *s, const char *name)
{
    static char path[2 * SCRATCH_PATH];

    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    return path;
}

void scratch_write(struct scratch *s, const char *name, const void *bytes, size_t length)
{
    int fd = open(scratch_path(s, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    for (size_t at = 0; at < length;) {
        ssize_t n = write(fd, (const char *)bytes + at, length - at);
        assert_true(n > 0);
        at += (size_t)n;
    }
    assert_int_equal(close(fd), 0);
}

int scratch_child(void (*run)(void *context), void *context, int fd, char *text, size_t size)
{
    int ends[2], status;
    size_t length = 0;
    ssize_t n;

    fflush(NULL);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], fd);
        close(ends[0]);
        close(ends[1]);
        run(context);
        exit(0);
    }
    close(ends[1]);
    while (length < size - 1 && (n = read(ends[0], text + length, size - 1 - length)) > 0)
        length += (size_t)n;
    text[length] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
