/* Options: every kind on the command line and in the file, what is refused and how it is said.
 */
#include "base/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/base/scratch.h"

#define ARGUMENTS 16

static struct scratch scratch;
static char said[16384];

static const char *folder, *secret;
static uint64_t depth, memory;
static double wait;
static bool buffered;
static struct option_list peers;

static const struct option table[] = {
    {"checkpoint", OPTION_TEXT, &folder, NULL, "DIR", "Folder of the shards"},
    {"api-key", OPTION_TEXT, &secret, NULL, "KEY", "What clients show"},
    {"depth", OPTION_COUNT, &depth, "16", "READS", "Reads in flight", 1, 64},
    {"memory", OPTION_SIZE, &memory, "24G", "BYTES", "Budget", 1 << 20, 0},
    {"wait", OPTION_REAL, &wait, "1.5", "SECONDS", "Patience"},
    {"buffered", OPTION_FLAG, &buffered, NULL, NULL, "Read through the page cache"},
    {"peer", OPTION_LIST, &peers, NULL, "URL", "An expertd"},
};

static struct options_program program = {
    .name = "kapok-test",
    .purpose = "Proves the options.",
    .option = table,
    .count = sizeof table / sizeof table[0],
};

static int set_up(void **state)
{
    program.arguments = NULL;
    scratch_open(&scratch);
    return 0;
}

static int tear_down(void **state)
{
    scratch_close(&scratch);
    return 0;
}

/* Parses a line of words. */
static void parse(const char *line, struct options *o)
{
    static char words[4096];
    char *argument[ARGUMENTS + 1] = {"kapok-test"};
    int count = 1;

    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word && count < ARGUMENTS; word = strtok(NULL, " "))
        argument[count++] = word;
    options_parse(&program, count, argument, o);
}

static void parse_in_child(void *line)
{
    struct options o;

    parse(line, &o);
    options_release(&o);
}

/* A line that ends the program with 2, and what it says. */
static void refused(const char *line, const char *sentence)
{
    int code = scratch_child(parse_in_child, (void *)line, 2, said, sizeof said);

    if (code != 2)
        fail_msg("'%s' ends with %d and '%s'", line, code, said);
    if (!strstr(said, sentence))
        fail_msg("'%s' says '%s', not '%s'", line, said, sentence);
}

static const char *config(const char *text)
{
    static char line[2 * SCRATCH_PATH];

    scratch_write(&scratch, "c.conf", text, strlen(text));
    snprintf(line, sizeof line, "--config %s", scratch_path(&scratch, "c.conf"));
    return line;
}

static void test_defaults(void **state)
{
    struct options o;

    parse("", &o);
    assert_null(folder);
    assert_int_equal(depth, 16);
    assert_int_equal(memory, (uint64_t)24 << 30);
    assert_true(wait == 1.5);
    assert_false(buffered);
    assert_int_equal(peers.count, 0);
    options_release(&o);
}

static void test_every_kind_on_the_line(void **state)
{
    struct options o;

    program.arguments = "FILE...";
    parse("--checkpoint /k3 one --depth=64 --memory 300M --wait -0.25 --buffered --peer a "
          "--peer=b --depth 7 two",
          &o);
    assert_string_equal(folder, "/k3");
    assert_int_equal(depth, 7); /* the later one */
    assert_int_equal(memory, 300 << 20);
    assert_true(wait == -0.25);
    assert_true(buffered);
    assert_int_equal(peers.count, 2);
    assert_string_equal(peers.item[0], "a");
    assert_string_equal(peers.item[1], "b");
    assert_int_equal(o.positional.count, 2);
    assert_string_equal(o.positional.item[0], "one");
    assert_string_equal(o.positional.item[1], "two");
    options_release(&o);
}

static void test_every_kind_in_the_file(void **state)
{
    struct options o;

    parse(config("checkpoint = \"/k3\"; api_key = \"s\"; depth = 9; memory = \"2T\";\n"
                 "wait = 3; buffered = true; peer = (\"a\", \"b\");"),
          &o);
    assert_string_equal(folder, "/k3");
    assert_string_equal(secret, "s");
    assert_int_equal(depth, 9);
    assert_int_equal(memory, (uint64_t)2 << 40);
    assert_true(wait == 3);
    assert_true(buffered);
    assert_int_equal(peers.count, 2);
    assert_string_equal(peers.item[1], "b");
    options_release(&o);

    parse(config("memory = 5000000000L; wait = 0.125; buffered = false; peer = \"a\";"), &o);
    assert_true(memory == 5000000000);
    assert_true(wait == 0.125);
    assert_false(buffered);
    assert_int_equal(peers.count, 1);
    options_release(&o);
}

static void test_the_line_wins(void **state)
{
    struct options o;
    char line[1024];

    snprintf(line, sizeof line, "--depth 3 --peer x %s",
             config("depth = 9; memory = \"2G\"; peer = (\"a\", \"b\");"));
    parse(line, &o);
    assert_int_equal(depth, 3);
    assert_int_equal(memory, (uint64_t)2 << 30);
    assert_int_equal(peers.count, 1);
    assert_string_equal(peers.item[0], "x");
    options_release(&o);
    snprintf(line, sizeof line, "--depth 3 %s", config("depth = 99;")); /* still checked */
    refused(line, "depth: expected 1 to 64, found 99");
}

static void test_bad_values(void **state)
{
    refused("--depth 0", "kapok-test: --depth: expected 1 to 64, found 0\n");
    refused("--depth 65", "--depth: expected 1 to 64, found 65");
    refused("--depth x", "--depth: expected a decimal number, found 'x'");
    refused("--depth -1", "--depth: expected a decimal number, found '-1'");
    refused("--depth 1K", "--depth: expected a decimal number, found '1K'");
    refused("--depth=", "--depth: expected a decimal number, found ''");
    refused("--depth 99999999999999999999", "--depth: expected 1 to 64, found 9999");
    refused("--memory 512K", "--memory: expected at least 1M, found 512K");
    refused(
        "--memory 1Q",
        "--memory: expected bytes as a decimal number with an optional K, M, G or T, found");
    refused("--memory 24GB", "found '24GB'");
    refused("--memory 99999999999T", "--memory: expected bytes");
    refused("--wait inf", "--wait: expected a finite number, found 'inf'");
    refused("--wait 1x", "--wait: expected a finite number, found '1x'");
    refused("--depth 0 --wait x", "found 0\n--wait: "); /* all at once */
}

static void test_bad_lines(void **state)
{
    refused("--nothing", "unrecognized option '--nothing'");
    refused("--depth", "option '--depth' requires an argument");
    refused("--buffered=1", "option '--buffered' doesn't allow an argument");
    refused("word", "unexpected argument 'word'");
    refused("--config /nonexistent", "--config: /nonexistent cannot be read: No such file");
    refused("--config /", "--config: / cannot be read: not a regular file");
}

static void test_bad_files(void **state)
{
    refused(config("depth = 9;\nnothing = 1;"), "c.conf:2: unknown setting nothing");
    refused(config("api-key = \"s\";"), "c.conf:1: unknown setting api-key");
    refused(config("\ndepth = 65;"), "c.conf:2: depth: expected 1 to 64, found 65");
    refused(config("depth = -5;"), "c.conf:1: depth: expected a decimal number, found '-5'");
    refused(config("depth = \"5\";"), "depth: expected a decimal number, found a setting of");
    refused(config("depth = 5.0;"), "depth: expected a decimal number, found a setting of");
    refused(config("depth = (5);"), "depth: expected a decimal number, found a setting of");
    refused(config("buffered = 1;"), "buffered: expected true or false, found a setting of");
    refused(config("wait = \"1\";"), "wait: expected a finite number, found a setting of");
    refused(config("checkpoint = 5;"), "checkpoint: expected text, found a setting of");
    refused(config("peer = (\"a\", 5);"), "c.conf:1: peer: expected text, found a setting of");
    refused(config("depth = 5;\n\nwait 6;"), "c.conf:3: syntax error");
    scratch_write(&scratch, "c.conf", "a\0b", 3);
    char line[1024];
    snprintf(line, sizeof line, "--config %s", scratch_path(&scratch, "c.conf"));
    refused(line, "c.conf: expected text, found a zero byte at offset 1");
}

static void test_help_and_version(void **state)
{
    assert_int_equal(scratch_child(parse_in_child, "--version", 1, said, sizeof said), 0);
    assert_memory_equal(said, "kapok-test ", 11);
    assert_int_equal(scratch_child(parse_in_child, "--help", 1, said, sizeof said), 0);
    assert_non_null(strstr(said, "Proves the options."));
    assert_non_null(strstr(said, "--depth=READS"));
    assert_non_null(strstr(said, "Reads in flight (1 to 64; default 16)"));
    assert_non_null(strstr(said, "Budget (at least 1M; default 24G)"));
    assert_non_null(strstr(said, "Patience (default 1.5)"));
    assert_non_null(strstr(said, "--config=FILE"));
    assert_int_equal(scratch_child(parse_in_child, "--usage", 1, said, sizeof said), 0);
    assert_non_null(strstr(said, "[--memory=BYTES]"));
}

static void test_described_without_secrets(void **state)
{
    struct options o;
    char line[512], small[12];

    parse("--api-key hush --peer a --peer b --buffered --memory 1536K", &o);
    options_describe(&program, line, sizeof line);
    assert_string_equal(line, "checkpoint= api-key=(secret) depth=16 memory=1536K wait=1.5 "
                              "buffered=true peer=a,b");
    options_describe(&program, small, sizeof small);
    assert_string_equal(small, "checkpoint=");
    options_release(&o);
}

static void test_sizes(void **state)
{
    uint64_t bytes = 7;
    const char *why = NULL;

    assert_int_equal(options_size("0", &bytes, &why), 0);
    assert_true(bytes == 0);
    assert_int_equal(options_size("18446744073709551615", &bytes, &why), 0);
    assert_true(bytes == UINT64_MAX);
    assert_int_equal(options_size("16777215T", &bytes, &why), 0);
    assert_true(bytes == (uint64_t)16777215 << 40);
    assert_int_equal(options_size("16777216T", &bytes, &why), -EINVAL);
    assert_string_equal(why, "expected fewer than 2^64 bytes");
    assert_int_equal(options_size("18446744073709551616", &bytes, &why), -EINVAL);
    assert_int_equal(options_size("", &bytes, &why), -EINVAL);
    assert_int_equal(options_size("K", &bytes, &why), -EINVAL);
    assert_int_equal(options_size(" 1", &bytes, &why), -EINVAL);
    assert_int_equal(options_size("+1", &bytes, &why), -EINVAL);
    assert_int_equal(options_size("1.5G", &bytes, &why), -EINVAL);
    assert_int_equal(options_size("1k", &bytes, &why), -EINVAL);
    assert_non_null(strstr(why, "with an optional K, M, G or T"));
    assert_true(bytes == (uint64_t)16777215 << 40); /* untouched by all of them */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_defaults, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_every_kind_on_the_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_every_kind_in_the_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_line_wins, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_values, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_help_and_version, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_described_without_secrets, set_up, tear_down),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
