/*
 * Links and what is not as it should be: strangers with another secret, model or version, junk
 * on the port, messages too large, bad addresses, a port in use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/proto/link_rig.h"

static void refused(uint8_t secret, uint8_t model, const char *word)
{
    struct echo e;
    struct asker a;
    struct question q;
    struct link_status s;
    echo_open(&e, "tcp://127.0.0.1:0", secret, model);
    asker_open(&a, link_server_address(e.server));
    await_state(&a, LINK_REFUSED);
    link_status(a.link, &s);
    assert_non_null(strstr(s.reason, word));
    question_open(&q, &a, 0, "x", 1);
    link_call_start(&q.call);
    assert_true(next_done(&a)->error < 0);
    assert_non_null(strstr(q.call.reason, word));
    assert_true(link_server_refused(e.server) >= 2);
    link_call_close(&q.call);
    asker_close(&a);
    echo_close(&e);
}

static void a_wrong_secret_is_refused(void **state)
{
    refused(9, 2, "secret");
}

static void another_model_is_refused(void **state)
{
    refused(1, 9, "model");
}

static int connect_to(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void junk(const char *address, const void *bytes, size_t length)
{
    int fd = connect_to(address);
    if (write(fd, bytes, length) != (ssize_t)length)
        fail();
    close(fd);
}

static void junk_leaves_the_server_as_it_was(void **state)
{
    struct echo e;
    struct asker a;
    struct question q;
    uint8_t bytes[200];
    /* nng's greeting of a REQ, the length of a message, a request id, then nothing of ours */
    static const uint8_t frame[] = {0, 'S', 'P',  0, 0, 0x30, 0, 0, 0, 0, 0, 0, 0, 0,
                                    0, 12,  0x80, 0, 0, 1,    1, 2, 3, 4, 5, 6, 7, 8};
    echo_open(&e, "tcp://127.0.0.1:0", 1, 2);
    for (int i = 0; i < 200; i++) {
        for (unsigned j = 0; j < sizeof bytes; j++)
            bytes[j] = (uint8_t)rand();
        junk(link_server_address(e.server), bytes, (size_t)(rand() % 200));
        junk(link_server_address(e.server), frame, i % 2 ? sizeof frame : sizeof frame - 5);
    }
    asker_open(&a, link_server_address(e.server));
    question_open(&q, &a, 0, "still here", 10);
    link_call_start(&q.call);
    assert_int_equal(next_done(&a)->error, 0);
    assert_memory_equal(q.call.reply.payload, "still here", 10);
    link_call_close(&q.call);
    asker_close(&a);
    echo_close(&e);
}

/* ---- by hand: nng's greeting of a REQ, then length, request id, message --------------------
 */

static void read_all(int fd, void *bytes, size_t length)
{
    assert_int_equal(recv(fd, bytes, length, MSG_WAITALL), (ssize_t)length);
}

/* Sends one message and checks the error it is answered with. */
static void refused_by_hand(struct echo *e, const void *bytes, size_t length, int error,
                            const char *sentence)
{
    static const uint8_t greeting[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    const uint8_t id[4] = {0x80, 0, 0, 1};
    uint64_t size = htobe64(length + sizeof id);
    uint8_t head[8 + 8 + 4], answer[4096];
    struct msg m;
    const char *why = "";
    int fd = connect_to(link_server_address(e->server));
    assert_int_equal(write(fd, greeting, sizeof greeting), sizeof greeting);
    assert_int_equal(write(fd, &size, sizeof size), sizeof size);
    assert_int_equal(write(fd, id, sizeof id), sizeof id);
    assert_int_equal(write(fd, bytes, length), (ssize_t)length);
    read_all(fd, head, sizeof head);
    memcpy(&size, head + 8, sizeof size);
    size = be64toh(size) - sizeof id;
    assert_true(size <= sizeof answer);
    read_all(fd, answer, size);
    close(fd);
    assert_int_equal(msg_reply_open(&m, answer, size, &why), 0);
    assert_int_equal(m.reply->error, error);
    if (!strstr(m.reply->reason, sentence))
        fail_msg("'%s' is not in: %s", sentence, m.reply->reason);
    msg_close(&m);
}

static void bad_requests_are_answered_with_a_sentence(void **state)
{
    struct echo e;
    uint8_t secret[SECRET_BYTES], model[CHECKPOINT_DIGEST], bytes[512];
    Kapok__Request r = KAPOK__REQUEST__INIT;
    echo_open(&e, "tcp://127.0.0.1:0", 1, 2);
    memset(secret, 1, sizeof secret);
    memset(model, 2, sizeof model);
    refused_by_hand(&e, "GET / HTTP/1.1\r\n\r\n", 18, -EBADMSG, "magic");
    msg_request_pack(&r, bytes);
    refused_by_hand(&e, bytes, 7, -EBADMSG, "first 8 bytes");
    refused_by_hand(&e, bytes, msg_request_frame(&r), -EACCES, "secret");
    r.secret = (ProtobufCBinaryData){sizeof secret - 1, secret};
    msg_request_pack(&r, bytes);
    refused_by_hand(&e, bytes, msg_request_frame(&r), -EACCES, "secret");
    r.secret.len++;
    r.version = 77;
    msg_request_pack(&r, bytes);
    refused_by_hand(&e, bytes, msg_request_frame(&r), -EPROTO,
                    "version 77, expected version 1");
    r.version = MSG_VERSION;
    msg_request_pack(&r, bytes);
    refused_by_hand(&e, bytes, msg_request_frame(&r), -EPROTO, "names no model");
    r.model = (ProtobufCBinaryData){sizeof model, model};
    msg_request_pack(&r, bytes);
    refused_by_hand(&e, bytes, msg_request_frame(&r), -EBADMSG, "kind is unknown");
    refused_by_hand(&e, bytes, msg_request_frame(&r) - 1, -EBADMSG, "ends within its header");
    assert_int_equal(link_server_refused(e.server), 8);
    echo_close(&e);
}

/* ---- sizes and addresses ------------------------------------------------------------------
 */

static void a_payload_above_what_the_peer_tells_is_not_sent(void **state)
{
    struct echo e;
    struct asker a;
    struct question q;
    uint8_t bytes[101] = {0};
    echo_open(&e, "tcp://127.0.0.1:0", 1, 2);
    e.payload_told = 100;
    asker_open(&a, link_server_address(e.server));
    await_state(&a, LINK_UP);
    question_open(&q, &a, 0, bytes, 101);
    link_call_start(&q.call);
    assert_int_equal(next_done(&a)->error, -EMSGSIZE);
    assert_non_null(strstr(q.call.reason, "larger than the peer takes"));
    link_call_release(&q.call);
    q.payload.iov_len = 100;
    link_call_start(&q.call);
    assert_int_equal(next_done(&a)->error, 0);
    link_call_close(&q.call);
    asker_close(&a);
    echo_close(&e);
}

static void a_payload_above_the_limit_does_not_arrive(void **state)
{
    struct echo e;
    struct asker a;
    struct question q;
    size_t length = 3 * PAYLOAD_MOST;
    uint8_t *bytes = calloc(1, length);
    echo_open(&e, "tcp://127.0.0.1:0", 1, 2);
    asker_open(&a, link_server_address(e.server));
    question_open(&q, &a, 0, bytes, length);
    q.call.seconds = 3;
    link_call_start(&q.call);
    assert_true(next_done(&a)->error < 0);
    link_call_release(&q.call);
    q.payload.iov_len = 10;
    q.call.seconds = 20;
    link_call_start(&q.call);
    assert_int_equal(next_done(&a)->error, 0);
    link_call_close(&q.call);
    asker_close(&a);
    echo_close(&e);
    free(bytes);
}

static void addresses_off_loopback_are_refused(void **state)
{
    static const char *const bad[] = {"tcp://10.0.0.1:80",    "tcp://0.0.0.0:80",
                                      "ipc:///tmp/x",         "tcp://127.0.0.1",
                                      "127.0.0.1:80",         "tcp://:80",
                                      "tcp://127.0.0.1:http", "tcp://127.0.0.1:70000"};
    static const char *const good[] = {"tcp://127.0.0.1:80", "tcp://[::1]:80",
                                       "tcp://localhost:0"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct problems p;
        problems_init(&p);
        assert_int_equal(link_address_check(bad[i], &p), -EINVAL);
        assert_non_null(strstr(p.text, bad[i]));
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct problems p;
        problems_init(&p);
        assert_int_equal(link_address_check(good[i], &p), 0);
    }
}

static void a_port_in_use_is_named(void **state)
{
    struct echo e;
    struct problems p;
    struct link_server *second = NULL;
    struct queue incoming;
    problems_init(&p);
    echo_open(&e, "tcp://127.0.0.1:0", 1, 2);
    assert_int_equal(queue_open(&incoming, 1), 0);
    struct link_server_options o = {.address = link_server_address(e.server),
                                    .payload_most = PAYLOAD_MOST,
                                    .requests = 1,
                                    .incoming = &incoming};
    assert_int_equal(link_server_open(&second, &o, &p), -EADDRINUSE);
    assert_null(second);
    assert_non_null(strstr(p.text, link_server_address(e.server)));
    assert_non_null(strstr(p.text, "in use"));
    queue_free(&incoming);
    echo_close(&e);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_secret_is_refused),
        cmocka_unit_test(another_model_is_refused),
        cmocka_unit_test(junk_leaves_the_server_as_it_was),
        cmocka_unit_test(a_payload_above_the_limit_does_not_arrive),
        cmocka_unit_test(addresses_off_loopback_are_refused),
        cmocka_unit_test(a_port_in_use_is_named),
        cmocka_unit_test(bad_requests_are_answered_with_a_sentence),
        cmocka_unit_test(a_payload_above_what_the_peer_tells_is_not_sent),
    };
    if (argc == 3 && !strcmp(argv[1], "--serve"))
        return serve(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
