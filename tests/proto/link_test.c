/*
 * Links over loopback, both sides in this process: greeting, calls in flight, servers that go
 * away and come back, deadlines, cancelling, strangers and junk.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "proto/link.h"
#include "proto/link_server.h"

#define PAYLOAD_MOST ((uint64_t)1 << 22)

/* A server that echoes the payload of Compute after `layer` milliseconds and answers Hello. */
struct echo {
    struct link_server *server;
    struct queue incoming;
    struct thread thread;
    uint64_t instance;
};

static void echo_hello(struct echo *e, struct link_request *r)
{
    Kapok__Reply reply = KAPOK__REPLY__INIT;
    Kapok__HelloReply hello = KAPOK__HELLO_REPLY__INIT;
    hello.role = (char *)"echo";
    hello.instance = e->instance;
    reply.body_case = KAPOK__REPLY__BODY_HELLO;
    reply.hello = &hello;
    link_server_reply(r, &reply, NULL, 0);
}

static void echo_compute(struct link_request *r)
{
    Kapok__Reply reply = KAPOK__REPLY__INIT;
    Kapok__ComputeReply compute = KAPOK__COMPUTE_REPLY__INIT;
    struct iovec payload = {(void *)(uintptr_t)r->msg.payload, r->msg.payload_bytes};
    reply.body_case = KAPOK__REPLY__BODY_COMPUTE;
    reply.compute = &compute;
    assert_int_equal((uintptr_t)r->msg.payload % 8, 0);
    usleep(r->msg.request->compute->layer * 1000);
    link_server_reply(r, &reply, &payload, 1);
}

static void echo_run(void *context)
{
    struct echo *e = context;
    void *item;
    while (!queue_take(&e->incoming, -1, &item)) {
        struct link_request *r = item;
        if (r->msg.request->body_case == KAPOK__REQUEST__BODY_HELLO)
            echo_hello(e, r);
        else if (r->msg.request->body_case == KAPOK__REQUEST__BODY_COMPUTE)
            echo_compute(r);
        else
            link_server_refuse(r, -ENOENT, "no %s here", "such thing");
    }
}

static void echo_open(struct echo *e, const char *address, uint8_t secret, uint8_t model)
{
    struct problems p;
    problems_init(&p);
    memset(e, 0, sizeof *e);
    assert_int_equal(queue_open(&e->incoming, 16), 0);
    struct link_server_options o = {.address = address,
                                    .payload_most = PAYLOAD_MOST,
                                    .requests = 16,
                                    .incoming = &e->incoming};
    memset(o.secret, secret, sizeof o.secret);
    memset(o.model, model, sizeof o.model);
    e->instance = (uint64_t)rand();
    assert_int_equal(link_server_open(&e->server, &o, &p), 0);
    assert_int_equal(thread_start(&e->thread, "echo", echo_run, e), 0);
}

static void echo_close(struct echo *e)
{
    queue_close(&e->incoming);
    thread_join(&e->thread);
    link_server_close(e->server);
    queue_free(&e->incoming);
}

struct asker {
    struct links *links;
    struct link *link;
    struct queue done;
};

static void asker_open(struct asker *a, const char *address)
{
    struct problems p;
    problems_init(&p);
    struct links_options o = {.role = "test", .payload_most = PAYLOAD_MOST};
    memset(o.secret, 1, sizeof o.secret);
    memset(o.model, 2, sizeof o.model);
    assert_int_equal(queue_open(&a->done, 64), 0);
    assert_int_equal(links_open(&a->links, &o), 0);
    assert_int_equal(links_add(a->links, address, &a->link, &p), 0);
    assert_int_equal(links_start(a->links), 0);
}

static void asker_close(struct asker *a)
{
    links_close(a->links);
    queue_free(&a->done);
}

static void await_state(struct asker *a, enum link_state wanted)
{
    struct link_status s;
    double until = thread_now() + 20;
    uint64_t seen = 0;
    do {
        seen = links_wait(a->links, seen, 0.2);
        link_status(a->link, &s);
    } while (s.state != wanted && thread_now() < until);
    assert_int_equal(s.state, wanted);
}

struct question {
    struct link_call call;
    Kapok__Request request;
    Kapok__Compute compute;
    struct iovec payload;
};

static void question_open(struct question *q, struct asker *a, unsigned ms, const void *bytes,
                          size_t length)
{
    memset(q, 0, sizeof *q);
    assert_int_equal(link_call_open(&q->call, a->link), 0);
    kapok__request__init(&q->request);
    kapok__compute__init(&q->compute);
    q->compute.layer = ms;
    q->request.body_case = KAPOK__REQUEST__BODY_COMPUTE;
    q->request.compute = &q->compute;
    q->payload = (struct iovec){(void *)(uintptr_t)bytes, length};
    q->call.request = &q->request;
    q->call.payload = &q->payload;
    q->call.payload_parts = 1;
    q->call.seconds = 20;
    q->call.done = &a->done;
}

static struct link_call *next_done(struct asker *a)
{
    void *item = NULL;
    assert_int_equal(queue_take(&a->done, 30, &item), 0);
    return item;
}

static void greeting_tells_who_is_there(void **state)
{
    struct echo e;
    struct asker a;
    echo_open(&e, "tcp://127.0.0.1:0", 1, 2);
    asker_open(&a, link_server_address(e.server));
    await_state(&a, LINK_UP);
    const Kapok__HelloReply *h = link_hello_get(a.link);
    assert_string_equal(h->role, "echo");
    assert_int_equal(h->instance, e.instance);
    link_hello_put(a.link);
    asker_close(&a);
    echo_close(&e);
}

static void many_calls_come_back_with_their_own_payload(void **state)
{
    struct echo e;
    struct asker a;
    struct question q[8];
    uint64_t bytes[8][1000];
    echo_open(&e, "tcp://127.0.0.1:0", 1, 2);
    asker_open(&a, link_server_address(e.server));
    for (unsigned i = 0; i < 8; i++) {
        for (unsigned j = 0; j < 1000; j++)
            bytes[i][j] = i * 1000 + j;
        question_open(&q[i], &a, 0, bytes[i], 8 * (i * 100 + 1));
    }
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 8; i++)
            link_call_start(&q[i].call);
        for (unsigned i = 0; i < 8; i++) {
            struct link_call *c = next_done(&a);
            struct question *one = (struct question *)c;
            assert_int_equal(c->error, 0);
            assert_int_equal(c->reply.payload_bytes, one->payload.iov_len);
            assert_memory_equal(c->reply.payload, one->payload.iov_base, one->payload.iov_len);
            assert_int_equal((uintptr_t)c->reply.payload % 8, 0);
            link_call_release(c);
        }
    }
    for (unsigned i = 0; i < 8; i++)
        link_call_close(&q[i].call);
    asker_close(&a);
    echo_close(&e);
}

static void an_error_of_the_peer_carries_its_sentence(void **state)
{
    struct echo e;
    struct asker a;
    struct question q;
    echo_open(&e, "tcp://127.0.0.1:0", 1, 2);
    asker_open(&a, link_server_address(e.server));
    question_open(&q, &a, 0, "", 0);
    Kapok__Stats stats = KAPOK__STATS__INIT;
    q.request.body_case = KAPOK__REQUEST__BODY_STATS;
    q.request.stats = &stats;
    link_call_start(&q.call);
    assert_int_equal(next_done(&a)->error, -ENOENT);
    assert_string_equal(q.call.reason, "no such thing here");
    link_call_close(&q.call);
    asker_close(&a);
    echo_close(&e);
}

/* ---- a server in a process of its own, to be killed ---------------------------------------
 */

static int serve(const char *address)
{
    struct echo e;
    echo_open(&e, address, 1, 2);
    printf("%s\n", link_server_address(e.server));
    fflush(stdout);
    thread_join(&e.thread);
    return 0;
}

/* Starts one and gives its address. */
static pid_t child_start(const char *address, char ret_address[64])
{
    int out[2];
    assert_int_equal(pipe(out), 0);
    pid_t child = fork();
    if (!child) {
        dup2(out[1], 1);
        close(out[0]);
        execl("/proc/self/exe", "link_test", "--serve", address, (char *)NULL);
        _exit(1);
    }
    close(out[1]);
    ssize_t n = read(out[0], ret_address, 63);
    close(out[0]);
    assert_true(n > 0);
    ret_address[n - 1] = 0;
    return child;
}

static void child_kill(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void a_killed_server_ends_its_calls_and_is_used_again_when_back(void **state)
{
    struct asker a;
    struct question q;
    char address[64], again[64];
    pid_t child = child_start("tcp://127.0.0.1:0", address);
    asker_open(&a, address);
    await_state(&a, LINK_UP);
    question_open(&q, &a, 10000, "x", 1);
    for (int round = 0; round < 3; round++) {
        q.compute.layer = 10000;
        link_call_start(&q.call);
        usleep(100000);
        child_kill(child);
        assert_int_equal(next_done(&a)->error, -ECONNRESET);
        assert_true(q.call.ended - q.call.started < 5);
        await_state(&a, LINK_SILENT);
        q.compute.layer = 0;
        link_call_start(&q.call); /* waits for the connection */
        child = child_start(address, again);
        assert_string_equal(address, again);
        assert_int_equal(next_done(&a)->error, 0);
        link_call_release(&q.call);
        await_state(&a, LINK_UP);
    }
    link_call_close(&q.call);
    asker_close(&a);
    child_kill(child);
}

static void a_frozen_server_is_seen_by_the_deadline(void **state)
{
    struct asker a;
    struct question q;
    char address[64];
    pid_t child = child_start("tcp://127.0.0.1:0", address);
    asker_open(&a, address);
    await_state(&a, LINK_UP);
    kill(child, SIGSTOP);
    question_open(&q, &a, 0, "x", 1);
    q.call.seconds = 0.3;
    link_call_start(&q.call);
    assert_int_equal(next_done(&a)->error, -ETIMEDOUT);
    await_state(&a, LINK_SILENT);
    kill(child, SIGCONT);
    await_state(&a, LINK_UP);
    q.call.seconds = 20;
    link_call_start(&q.call);
    assert_int_equal(next_done(&a)->error, 0);
    link_call_close(&q.call);
    asker_close(&a);
    child_kill(child);
}

static void a_cancelled_call_ends_at_once(void **state)
{
    struct asker a;
    struct question q;
    char address[64];
    pid_t child = child_start("tcp://127.0.0.1:0", address);
    asker_open(&a, address);
    question_open(&q, &a, 10000, "x", 1);
    link_call_start(&q.call);
    usleep(50000);
    link_call_cancel(&q.call);
    assert_int_equal(next_done(&a)->error, -ECANCELED);
    assert_true(q.call.ended - q.call.started < 5);
    link_call_start(&q.call); /* closed while under way: nothing comes out of the queue */
    link_call_close(&q.call);
    assert_int_equal(queue_count(&a.done), 0);
    asker_close(&a);
    child_kill(child);
}

/* ---- strangers ----------------------------------------------------------------------------
 */

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

static void junk(const char *address, const void *bytes, size_t length)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
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
        cmocka_unit_test(greeting_tells_who_is_there),
        cmocka_unit_test(many_calls_come_back_with_their_own_payload),
        cmocka_unit_test(an_error_of_the_peer_carries_its_sentence),
        cmocka_unit_test(a_killed_server_ends_its_calls_and_is_used_again_when_back),
        cmocka_unit_test(a_frozen_server_is_seen_by_the_deadline),
        cmocka_unit_test(a_cancelled_call_ends_at_once),
        cmocka_unit_test(a_wrong_secret_is_refused),
        cmocka_unit_test(another_model_is_refused),
        cmocka_unit_test(junk_leaves_the_server_as_it_was),
        cmocka_unit_test(a_payload_above_the_limit_does_not_arrive),
        cmocka_unit_test(addresses_off_loopback_are_refused),
        cmocka_unit_test(a_port_in_use_is_named),
    };
    if (argc == 3 && !strcmp(argv[1], "--serve"))
        return serve(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
