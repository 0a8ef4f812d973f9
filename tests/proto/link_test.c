/*
 * Links over loopback: greeting, calls in flight, servers that go away and come back,
 * deadlines, cancelling.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/proto/link_rig.h"

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
    waitpid(child, NULL, WUNTRACED); /* until then a thread of it may still answer */
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

/* Wherever closing falls in a call's life, nothing comes out of the queue after it. */
static void calls_close_at_any_moment(void **state)
{
    struct echo e;
    struct asker a;
    struct question q;
    echo_open(&e, "tcp://127.0.0.1:0", 1, 2);
    asker_open(&a, link_server_address(e.server));
    await_state(&a, LINK_UP);
    for (unsigned i = 0; i < 500; i++) {
        void *item;
        question_open(&q, &a, i % 3 == 2, "x", 1);
        link_call_start(&q.call);
        if (i % 5)
            usleep(rand() % 300);
        link_call_close(&q.call);
        while (!queue_take(&a.done, 0, &item))
            ;
    }
    question_open(&q, &a, 0, "x", 1);
    link_call_start(&q.call);
    assert_ptr_equal(next_done(&a), &q.call);
    assert_int_equal(q.call.error, 0);
    link_call_close(&q.call);
    asker_close(&a);
    echo_close(&e);
}

/* Against a loop that spins while nobody is there; it is processor time that is compared. */
static void waiting_for_a_peer_takes_no_processor(void **state)
{
    struct asker a;
    struct question q;
    struct timespec before, after;
    asker_open(&a, "tcp://127.0.0.1:1");
    question_open(&q, &a, 0, "x", 1);
    link_call_start(&q.call);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    usleep(1000000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    double used =
        (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
    print_message("processor time while a peer was away for 1 s: %.4f s\n", used);
    assert_true(used < 0.2);
    assert_int_equal(queue_count(&a.done), 0);
    link_call_close(&q.call);
    asker_close(&a);
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
        cmocka_unit_test(calls_close_at_any_moment),
        cmocka_unit_test(waiting_for_a_peer_takes_no_processor),
    };
    if (argc == 3 && !strcmp(argv[1], "--serve"))
        return serve(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
