/*
 * Frames: the golden bytes of one message of every kind (a change here is a change of the
 * protocol), truncation at every length, hostile sizes, and every bit turned over.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/msg.h"
#include "tests/proto/golden.h"
#include "tests/proto/samples.h"

/* The bytes of every sample, requests first. */
struct packed {
    const char *name;
    bool is_request;
    uint8_t *bytes;
    size_t length;
};

static struct packed packed[32];
static size_t packed_count;

static int pack_all(void **state)
{
    size_t requests, replies;
    const struct samples_request *request = samples_requests(&requests);
    const struct samples_reply *reply = samples_replies(&replies);
    for (size_t i = 0; i < requests + replies; i++) {
        struct packed *m = &packed[packed_count++];
        m->is_request = i < requests;
        m->name = m->is_request ? request[i].name : reply[i - requests].name;
        m->length = m->is_request ? msg_request_frame(&request[i].message)
                                  : msg_reply_frame(&reply[i - requests].message);
        m->bytes = malloc(m->length);
        if (m->is_request)
            msg_request_pack(&request[i].message, m->bytes);
        else
            msg_reply_pack(&reply[i - requests].message, m->bytes);
    }
    return 0;
}

static int free_all(void **state)
{
    while (packed_count)
        free(packed[--packed_count].bytes);
    return 0;
}

static int open_one(const struct packed *m, struct msg *out, const uint8_t *bytes,
                    size_t length, const char **ret_why)
{
    return m->is_request ? msg_request_open(out, bytes, length, ret_why)
                         : msg_reply_open(out, bytes, length, ret_why);
}

static char *hex_of(const uint8_t *bytes, size_t length)
{
    char *text = malloc(2 * length + 1);
    for (size_t i = 0; i < length; i++)
        sprintf(text + 2 * i, "%02x", bytes[i]);
    text[2 * length] = 0;
    return text;
}

/* Header and padding alike; GOLDEN leaves the zeros at the end out. */
static void every_kind_has_its_golden_bytes(void **state)
{
    assert_int_equal(packed_count, GOLDEN_COUNT);
    for (size_t i = 0; i < packed_count; i++) {
        char *hex = hex_of(packed[i].bytes, packed[i].length);
        size_t n = strlen(golden[i].hex);
        assert_string_equal(packed[i].name, golden[i].name);
        assert_int_equal(packed[i].length % MSG_ALIGN, 0);
        if (n > strlen(hex) || memcmp(hex, golden[i].hex, n) ||
            strspn(hex + n, "0") != strlen(hex + n))
            fail_msg("%s is now {\"%s\", \"%s\"}", packed[i].name, packed[i].name, hex);
        free(hex);
    }
}

static void what_is_packed_is_opened(void **state)
{
    for (size_t i = 0; i < packed_count; i++) {
        const struct packed *m = &packed[i];
        struct msg opened = {0};
        const char *why = "";
        assert_int_equal(open_one(m, &opened, m->bytes, m->length, &why), 0);
        assert_int_equal(opened.payload_bytes, 0);
        assert_int_equal(opened.request != NULL, m->is_request);
        assert_int_equal(opened.reply != NULL, !m->is_request);
        uint8_t *again = malloc(m->length);
        if (m->is_request)
            msg_request_pack(opened.request, again);
        else
            msg_reply_pack(opened.reply, again);
        assert_memory_equal(again, m->bytes, m->length);
        free(again);
        msg_close(&opened);
    }
}

static void a_payload_lies_behind_its_frame(void **state)
{
    const struct packed *m = &packed[0];
    uint8_t *bytes = calloc(1, m->length + 100);
    struct msg opened;
    const char *why = "";
    memcpy(bytes, m->bytes, m->length);
    assert_int_equal(msg_request_open(&opened, bytes, m->length + 100, &why), 0);
    assert_ptr_equal(opened.payload, bytes + m->length);
    assert_int_equal(opened.payload_bytes, 100);
    msg_close(&opened);
    free(bytes);
}

static void every_truncation_is_refused(void **state)
{
    for (size_t i = 0; i < packed_count; i++) {
        const struct packed *m = &packed[i];
        for (size_t n = 0; n < m->length; n++) {
            struct msg opened = {.payload_bytes = 77};
            const char *why = NULL;
            uint8_t *bytes = malloc(n ? n : 1); /* exactly as long, for the sanitizers */
            memcpy(bytes, m->bytes, n);
            assert_int_equal(open_one(m, &opened, bytes, n, &why), -EBADMSG);
            assert_non_null(why);
            assert_int_equal(opened.payload_bytes, 77);
            free(bytes);
        }
    }
}

static void set_word(uint8_t *bytes, size_t at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[at + (size_t)i] = (uint8_t)(value >> 8 * i);
}

static void refused(const uint8_t *bytes, size_t length, const char *sentence)
{
    struct msg opened;
    const char *why = "";
    assert_int_equal(msg_request_open(&opened, bytes, length, &why), -EBADMSG);
    if (!strstr(why, sentence))
        fail_msg("'%s' is not in: %s", sentence, why);
}

static void hostile_sizes_are_refused(void **state)
{
    static const uint32_t sizes[] = {UINT32_MAX, UINT32_MAX - 7, 1U << 31, (1U << 20) + 1};
    size_t length = packed[0].length;
    uint8_t *bytes = malloc(length);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        memcpy(bytes, packed[0].bytes, length);
        set_word(bytes, 4, sizes[i]);
        refused(bytes, length, "above 1 MB");
    }
    set_word(bytes, 4, 1U << 20);
    refused(bytes, length, "ends within its header");
    set_word(bytes, 4, (uint32_t)length - 7);
    refused(bytes, length, "ends within its header");
    set_word(bytes, 4, (uint32_t)length - 8); /* the padding is no header */
    refused(bytes, length, "no request");
    memcpy(bytes, packed[0].bytes, length);
    bytes[0] ^= 1;
    refused(bytes, length, "magic");
    free(bytes);
}

/* A header of nothing is a message without a body; who asked has to refuse that. */
static void an_empty_header_has_no_body(void **state)
{
    uint8_t bytes[64] = {0};
    struct msg opened;
    const char *why = "";
    set_word(bytes, 0, MSG_MAGIC);
    assert_int_equal(msg_request_open(&opened, bytes, sizeof bytes, &why), 0);
    assert_int_equal(opened.request->body_case, KAPOK__REQUEST__BODY__NOT_SET);
    assert_int_equal(opened.request->secret.len, 0);
    msg_close(&opened);
}

static void every_flipped_bit_is_survived(void **state)
{
    for (size_t i = 0; i < packed_count; i++) {
        const struct packed *m = &packed[i];
        for (size_t bit = 0; bit < 8 * m->length; bit++) {
            struct msg opened;
            const char *why = NULL;
            m->bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
            if (open_one(m, &opened, m->bytes, m->length, &why))
                assert_non_null(why);
            else
                msg_close(&opened);
            m->bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_its_golden_bytes),
        cmocka_unit_test(what_is_packed_is_opened),
        cmocka_unit_test(a_payload_lies_behind_its_frame),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(hostile_sizes_are_refused),
        cmocka_unit_test(an_empty_header_has_no_body),
        cmocka_unit_test(every_flipped_bit_is_survived),
    };
    return cmocka_run_group_tests(tests, pack_all, free_all);
}
