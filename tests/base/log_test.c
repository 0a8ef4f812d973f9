/* The log's lines, as another process would read them. */
#include "base/log.h"

#include <errno.h>
#include <regex.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/base/scratch.h"

static char text[32768];

static void matches(const char *line, const char *pattern)
{
    regex_t regex;

    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    if (regexec(&regex, line, 0, NULL, 0) != 0)
        fail_msg("'%s' does not match '%s'", line, pattern);
    regfree(&regex);
}

static void log_levels(void *context)
{
    log_init("kapok-test", LOG_INFO);
    log_debug("hidden");
    log_info("started layers=%d", 93);
    log_warn("slow");
    log_error("gone peer=%s", "a");
}

static void test_format_and_levels(void **state)
{
    assert_int_equal(scratch_child(log_levels, NULL, 2, text, sizeof text), 0);
    matches(text, "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z info "
                  "kapok-test started layers=93\n[^\n]*Z warn kapok-test slow\n[^\n]*Z error "
                  "kapok-test gone peer=a\n$");
}

static void log_strange(void *context)
{
    log_init("kapok-test", LOG_DEBUG);
    log_debug("name=%s end", "a\nb\tc\x1b\x7f\xc3\xa9");
}

static void test_control_characters_become_spaces(void **state)
{
    assert_int_equal(scratch_child(log_strange, NULL, 2, text, sizeof text), 0);
    matches(text, " debug kapok-test name=a b c  \xc3\xa9 end\n$");
}

static void log_long(void *context)
{
    static char value[10000];

    memset(value, 'v', sizeof value - 1);
    log_init("kapok-test", LOG_INFO);
    log_info("value=%s", value);
    log_info("next");
}

static void test_a_long_line_is_cut_and_said_so(void **state)
{
    assert_int_equal(scratch_child(log_long, NULL, 2, text, sizeof text), 0);
    matches(text, "^[^\n]* value=v+\\.\\.\\.\n[^\n]* next\n$");
    assert_true(strchr(text, '\n') - text < 4096);
}

static void log_with_errno(void *context)
{
    close(2);
    errno = 42;
    log_error("nobody hears");
    if (errno != 42)
        _exit(1);
}

static void test_errno_is_left_alone(void **state)
{
    assert_int_equal(scratch_child(log_with_errno, NULL, 1, text, sizeof text), 0);
}

static void test_level_names(void **state)
{
    enum log_level level = LOG_ERROR;

    assert_int_equal(log_level_parse("debug", &level), 0);
    assert_int_equal(level, LOG_DEBUG);
    assert_int_equal(log_level_parse("warn", &level), 0);
    assert_int_equal(level, LOG_WARN);
    assert_int_equal(log_level_parse("WARN", &level), -EINVAL);
    assert_int_equal(log_level_parse("", &level), -EINVAL);
    assert_int_equal(level, LOG_WARN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_format_and_levels),
        cmocka_unit_test(test_control_characters_become_spaces),
        cmocka_unit_test(test_a_long_line_is_cut_and_said_so),
        cmocka_unit_test(test_errno_is_left_alone),
        cmocka_unit_test(test_level_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
