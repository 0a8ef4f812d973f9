/*
 * The tokenizer on the toy vocabulary of the small checkpoint: how text is cut, merged, what
 * becomes a control token and what never does, round trips of any bytes, text from a stream cut
 * anywhere, and files that are refused. Run with the checkpoint's folder.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "coordinator/text/merge.h"
#include "coordinator/text/pieces.h"
#include "coordinator/text/tokenizer.h"
#include "proto/shape.h"

static const char *folder;
static struct tokenizer *tokenizer;
static uint32_t vocab;

static int setup(void **state)
{
    struct problems p;
    struct shape s;
    problems_init(&p);
    if (shape_read(&s, folder, &p) || tokenizer_open(&tokenizer, folder, s.vocab, &p)) {
        fprintf(stderr, "%s\n", p.text);
        return -1;
    }
    vocab = s.vocab;
    return 0;
}

static int teardown(void **state)
{
    tokenizer_close(tokenizer);
    return 0;
}

/* ---- pieces -------------------------------------------------------------------------------
 */

static int join_piece(void *context, const uint8_t *bytes, size_t n)
{
    strncat(context, (const char *)bytes, n);
    strcat(context, "|");
    return 0;
}

static void pieces_are(const char *text, const char *expected)
{
    char joined[1024] = "";
    struct problems p;
    struct pieces *ps;
    problems_init(&p);
    assert_int_equal(pieces_open(&ps, &p), 0);
    assert_int_equal(pieces_walk(ps, (const uint8_t *)text, strlen(text), join_piece, joined),
                     0);
    assert_string_equal(joined, expected);
    pieces_close(ps);
}

static void text_is_cut_as_the_release_cuts_it(void **state)
{
    pieces_are("HelloWorld 漢字テスト 12345 it's", "Hello|World| |漢字|テスト| |123|45| it's|");
    pieces_are("Hello\n\nworld  ", "Hello|\n\n|world|  |");
    pieces_are("I'M we're they'LL", "I'M| we're| they'LL|");
    pieces_are("a  b", "a| | b|");
    pieces_are("x \n \n y", "x| \n \n| y|");
    pieces_are("!!\r\n\r\nok", "!!\r\n\r\n|ok|");
    pieces_are("a\x1c"
               "b",
               "a|\x1c"
               "b|");            /* U+001C is no white space to the pattern */
    pieces_are("々〇", "々〇|"); /* script Han, not category Lo alone */
    pieces_are("it'ſ", "it'ſ|"); /* U+017F folds to s */
    pieces_are("a\xe1\xa0\x8e"
               "b",
               "a|\xe1\xa0\x8e"
               "b|"); /* U+180E is no white space */
    pieces_are("", "");
}

static int count_piece(void *context, const uint8_t *bytes, size_t n)
{
    size_t *longest = context;
    if (n > *longest)
        *longest = n;
    return 0;
}

static void a_run_is_cut_after_25000_characters(void **state)
{
    size_t n = 25001, longest = 0;
    uint8_t *text = malloc(n);
    struct problems p;
    struct pieces *ps;
    memset(text, 'a', n);
    problems_init(&p);
    assert_int_equal(pieces_open(&ps, &p), 0);
    assert_int_equal(pieces_walk(ps, text, n, count_piece, &longest), 0);
    assert_int_equal(longest, 25000);
    pieces_close(ps);
    free(text);
}

/* ---- merging ------------------------------------------------------------------------------
 */

/* The definition, in quadratic time. */
static size_t merge_slowly(const struct ranks *r, const uint8_t *bytes, size_t n, uint32_t *out)
{
    size_t start[300], parts = n;
    for (size_t i = 0; i <= n; i++)
        start[i] = i;
    for (;;) {
        size_t best = parts;
        uint32_t lowest = RANKS_NONE;
        for (size_t i = 0; i + 1 < parts; i++) {
            uint32_t rank = ranks_find(r, bytes + start[i], start[i + 2] - start[i]);
            if (rank < lowest) {
                lowest = rank;
                best = i;
            }
        }
        if (best == parts)
            break;
        memmove(&start[best + 1], &start[best + 2], (parts - best - 1) * sizeof start[0]);
        parts--;
    }
    for (size_t i = 0; i < parts; i++)
        out[i] = ranks_find(r, bytes + start[i], start[i + 1] - start[i]);
    return parts;
}

static void merging_is_the_definition(void **state)
{
    static const char letters[] = "the anoricsdlwu ";
    char path[4096];
    struct ranks r;
    struct merge m;
    struct problems p;
    problems_init(&p);
    snprintf(path, sizeof path, "%s/tiktoken.model", folder);
    assert_int_equal(ranks_open(&r, path, vocab, &p), 0);
    merge_init(&m, &r);
    srand(1);
    for (int round = 0; round < 3000; round++) {
        uint8_t bytes[256];
        uint32_t ours[256], theirs[256];
        size_t n = 1 + (size_t)rand() % (round % 10 ? 20 : 250);
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)(rand() % 20 ? letters[rand() % 16] : rand());
        if (ranks_find(&r, bytes, n) != RANKS_NONE)
            continue; /* a whole piece that is a token stays one */
        ptrdiff_t count = merge_piece(&m, bytes, n, ours);
        assert_int_equal(count, merge_slowly(&r, bytes, n, theirs));
        assert_memory_equal(ours, theirs, (size_t)count * sizeof ours[0]);
    }
    merge_fini(&m);
    ranks_close(&r);
}

/* ---- the whole ----------------------------------------------------------------------------
 */

static void any_bytes_come_back(void **state)
{
    srand(2);
    for (int round = 0; round < 500; round++) {
        char text[300];
        uint8_t back[300];
        size_t n = (size_t)rand() % sizeof text, count, length, total = 0;
        uint32_t *ids;
        for (size_t i = 0; i < n; i++)
            text[i] = (char)(round % 2 ? rand() : 32 + rand() % 90);
        assert_int_equal(tokenizer_encode(tokenizer, text, n, false, &ids, &count), 0);
        for (size_t i = 0; i < count; i++) {
            const uint8_t *bytes = tokenizer_bytes(tokenizer, ids[i], &length);
            assert_false(tokenizer_is_control(tokenizer, ids[i]));
            assert_true(total + length <= n);
            memcpy(back + total, bytes, length);
            total += length;
        }
        assert_int_equal(total, n);
        assert_memory_equal(back, text, n);
        free(ids);
    }
}

static void every_id_has_bytes(void **state)
{
    for (uint32_t id = 0; id < vocab; id++) {
        size_t length;
        assert_non_null(tokenizer_bytes(tokenizer, id, &length));
        assert_true(length > 0);
    }
}

static void control_tokens_come_only_where_allowed(void **state)
{
    static const char text[] = "a<|open|>message<|sep|>[BOS]<|end_of_msg|>b<|open|";
    uint32_t *ids;
    size_t count, controls = 0;
    assert_int_equal(tokenizer_encode(tokenizer, text, strlen(text), true, &ids, &count), 0);
    for (size_t i = 0; i < count; i++)
        controls += tokenizer_is_control(tokenizer, ids[i]);
    assert_int_equal(controls, 4);
    assert_int_equal(ids[1], tokenizer_control(tokenizer, "<|open|>"));
    free(ids);
    assert_int_equal(tokenizer_encode(tokenizer, text, strlen(text), false, &ids, &count), 0);
    for (size_t i = 0; i < count; i++)
        assert_false(tokenizer_is_control(tokenizer, ids[i]));
    free(ids);
    assert_int_equal(tokenizer_control(tokenizer, "<|nothing|>"), -1);
}

/* ---- streams ------------------------------------------------------------------------------
 */

static void stream_all(const uint8_t *bytes, size_t n, size_t cut, char *out)
{
    struct tokenizer_stream s = {0};
    size_t made = tokenizer_stream_push(&s, bytes, cut, out);
    made += tokenizer_stream_push(&s, bytes + cut, n - cut, out + made);
    tokenizer_stream_end(&s, out + made);
}

static void a_stream_may_be_cut_anywhere(void **state)
{
    static const struct {
        const char *bytes, *text;
    } cases[] = {
        {"plain", "plain"},
        {"Привет 🙂 漢", "Привет 🙂 漢"},
        {"a\xff"
         "b",
         "a\xef\xbf\xbd"
         "b"},
        {"\xe6\xbc", "\xef\xbf\xbd"},
        {"\xf0\x9f\x99x", "\xef\xbf\xbdx"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* overlong */
        {"\xe2\x82\xe2\x82\xac", "\xef\xbf\xbd\xe2\x82\xac"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n = strlen(cases[i].bytes);
        for (size_t cut = 0; cut <= n; cut++) {
            char out[256];
            stream_all((const uint8_t *)cases[i].bytes, n, cut, out);
            assert_string_equal(out, cases[i].text);
        }
    }
}

/* ---- files --------------------------------------------------------------------------------
 */

static void refused(const char *ranks, const char *word)
{
    char path[] = "ranks-test-XXXXXX";
    struct ranks r;
    struct problems p;
    int fd = mkstemp(path);
    problems_init(&p);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, ranks, strlen(ranks)), (ssize_t)strlen(ranks));
    close(fd);
    assert_int_equal(ranks_open(&r, path, 1000, &p), -EINVAL);
    unlink(path);
    if (!strstr(p.text, word))
        fail_msg("no '%s' in '%s'", word, p.text);
}

static void bad_rank_files_are_refused(void **state)
{
    refused("IQ== 0\nIg== 2\n", "line 2: expected rank 1, found 2");
    refused("IQ==0\n", "line 1");
    refused("!!!! 0\n", "base64");
    refused("IQ== 0\nIQ== 1\n", "rank already");
    refused("IQ== 0\n", "byte 0 has no rank");
    refused("", "byte 0 has no rank");
    refused("IQ== 0x\n", "expected rank 0");
    struct ranks r;
    struct problems p;
    problems_init(&p);
    assert_int_equal(ranks_open(&r, "/nonexistent/tiktoken.model", 10, &p), -ENOENT);
    assert_int_equal(p.count, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_cut_as_the_release_cuts_it),
        cmocka_unit_test(a_run_is_cut_after_25000_characters),
        cmocka_unit_test(merging_is_the_definition),
        cmocka_unit_test(any_bytes_come_back),
        cmocka_unit_test(every_id_has_bytes),
        cmocka_unit_test(control_tokens_come_only_where_allowed),
        cmocka_unit_test(a_stream_may_be_cut_anywhere),
        cmocka_unit_test(bad_rank_files_are_refused),
    };
    if (argc < 2)
        return 77;
    folder = argv[1];
    return cmocka_run_group_tests(tests, setup, teardown);
}
