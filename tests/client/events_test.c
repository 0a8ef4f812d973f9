/* The reader of server-sent events: any pieces in, the same data out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/events.h"

struct heard {
    char text[1024];
    size_t count;
};

static void hear(void *context, const char *text, size_t length)
{
    struct heard *h = context;
    size_t used = strlen(h->text);
    assert_int_equal(text[length], 0);
    snprintf(h->text + used, sizeof h->text - used, "<%s>", text);
    h->count++;
}

static const char stream[] = ": nothing yet\n"
                             "\n"
                             "data: {\"a\": 1}\n\n"
                             "data:no blank\r\n\r\n"
                             "event: other\nid: 7\ndata\n\n"
                             "data: \n\n"
                             "data:  two blanks\n\n"
                             "data: [DONE]\n\n";

static void pieces_of_any_size(void **state)
{
    for (size_t piece = 1; piece <= sizeof stream; piece++) {
        struct heard h = {"", 0};
        struct events e;
        events_init(&e, hear, &h);
        for (size_t at = 0; at < sizeof stream - 1; at += piece) {
            size_t left = sizeof stream - 1 - at;
            events_feed(&e, stream + at, left < piece ? left : piece);
        }
        assert_string_equal(h.text, "<{\"a\": 1}><no blank><>< two blanks><[DONE]>");
        assert_false(e.damaged);
        events_fini(&e);
    }
}

static void a_line_without_an_end_is_not_said(void **state)
{
    struct heard h = {"", 0};
    struct events e;
    events_init(&e, hear, &h);
    events_feed(&e, "data: half", 10);
    assert_int_equal(h.count, 0);
    events_fini(&e);
}

static void a_line_too_long_damages_the_stream(void **state)
{
    struct heard h = {"", 0};
    struct events e;
    size_t length = EVENTS_LINE + 10;
    char *bytes = malloc(length);
    memset(bytes, 'x', length);
    events_init(&e, hear, &h);
    events_feed(&e, bytes, length);
    assert_true(e.damaged);
    events_feed(&e, "\ndata: more\n", 12);
    assert_int_equal(h.count, 0);
    events_fini(&e);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_any_size),
        cmocka_unit_test(a_line_without_an_end_is_not_said),
        cmocka_unit_test(a_line_too_long_damages_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
