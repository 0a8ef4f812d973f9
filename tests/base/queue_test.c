/* Queues between threads, and the threads themselves. */
#include "base/queue.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/thread.h"

#define PUTTERS 3
#define TAKERS  3
#define ITEMS   20000

static void test_order_and_bounds(void **state)
{
    struct queue q;
    int item[4];
    void *taken = NULL;

    assert_int_equal(queue_open(&q, 3), 0);
    assert_int_equal(queue_take(&q, 0, &taken), -ETIMEDOUT);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 3; i++)
            assert_int_equal(queue_offer(&q, &item[i]), 0);
        assert_int_equal(queue_offer(&q, &item[3]), -EAGAIN);
        assert_int_equal(queue_count(&q), 3);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(queue_take(&q, 0, &taken), 0);
            assert_ptr_equal(taken, &item[i]);
        }
        assert_int_equal(queue_put(&q, &item[3]), 0);
        assert_int_equal(queue_take(&q, -1, &taken), 0);
        assert_ptr_equal(taken, &item[2]);
        assert_int_equal(queue_take(&q, 1e300, &taken), 0);
        assert_ptr_equal(taken, &item[3]);
    }
    queue_free(&q);
}

static void test_closed_can_be_emptied_only(void **state)
{
    struct queue q;
    int item;
    void *taken = NULL;

    assert_int_equal(queue_open(&q, 3), 0);
    assert_int_equal(queue_put(&q, &item), 0);
    queue_close(&q);
    assert_int_equal(queue_put(&q, &item), -EPIPE);
    assert_int_equal(queue_offer(&q, &item), -EPIPE);
    assert_int_equal(queue_take(&q, -1, &taken), 0);
    assert_ptr_equal(taken, &item);
    assert_int_equal(queue_take(&q, -1, &taken), -EPIPE);
    queue_free(&q);
}

static void test_waiting_ends(void **state)
{
    struct queue q;
    void *taken = NULL;

    assert_int_equal(queue_open(&q, 1), 0);
    double start = thread_now();
    assert_int_equal(queue_take(&q, 0.02, &taken), -ETIMEDOUT);
    assert_true(thread_now() - start >= 0.02);
    assert_null(taken);
    queue_free(&q);
}

struct crowd {
    struct queue q;
    atomic_int next;
    atomic_int taken[ITEMS];
    int item[ITEMS];
};

static void put_items(void *context)
{
    struct crowd *c = context;
    int i;

    while ((i = atomic_fetch_add(&c->next, 1)) < ITEMS)
        if (queue_put(&c->q, &c->item[i]) < 0)
            abort();
}

static void take_items(void *context)
{
    struct crowd *c = context;
    void *item;

    while (queue_take(&c->q, -1, &item) == 0)
        atomic_fetch_add(&c->taken[(int *)item - c->item], 1);
}

static void test_many_threads_lose_nothing(void **state)
{
    struct crowd *c = calloc(1, sizeof *c);
    struct thread putter[PUTTERS], taker[TAKERS];

    assert_int_equal(queue_open(&c->q, 7), 0);
    for (int i = 0; i < TAKERS; i++)
        assert_int_equal(thread_start(&taker[i], "taker", take_items, c), 0);
    for (int i = 0; i < PUTTERS; i++)
        assert_int_equal(thread_start(&putter[i], "putter", put_items, c), 0);
    for (int i = 0; i < PUTTERS; i++)
        thread_join(&putter[i]);
    queue_close(&c->q);
    for (int i = 0; i < TAKERS; i++)
        thread_join(&taker[i]);
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(atomic_load(&c->taken[i]), 1);
    queue_free(&c->q);
    free(c);
}

static void put_until_closed(void *context)
{
    while (queue_put(context, context) == 0)
        ;
}

static void test_closing_wakes_putters(void **state)
{
    struct queue q;
    struct thread putter[PUTTERS];

    assert_int_equal(queue_open(&q, 1), 0);
    for (int i = 0; i < PUTTERS; i++)
        assert_int_equal(thread_start(&putter[i], "putter", put_until_closed, &q), 0);
    while (queue_count(&q) < 1)
        usleep(100);
    queue_close(&q);
    for (int i = 0; i < PUTTERS; i++)
        thread_join(&putter[i]); /* comes back only when woken */
    assert_int_equal(queue_count(&q), 1);
    queue_free(&q);
}

struct seen {
    char name[16];
    sigset_t blocked;
};

static void look_around(void *context)
{
    struct seen *s = context;

    pthread_getname_np(pthread_self(), s->name, sizeof s->name);
    pthread_sigmask(SIG_SETMASK, NULL, &s->blocked);
}

static void test_threads_have_names_and_no_signals(void **state)
{
    struct thread t;
    struct seen seen;
    sigset_t own;

    assert_int_equal(thread_start(&t, "a name that is too long", look_around, &seen), 0);
    thread_join(&t);
    assert_string_equal(seen.name, "a name that is ");
    assert_true(sigismember(&seen.blocked, SIGTERM));
    assert_true(sigismember(&seen.blocked, SIGUSR1));
    assert_false(sigismember(&seen.blocked, SIGSEGV));
    pthread_sigmask(SIG_SETMASK, NULL, &own);
    assert_false(sigismember(&own, SIGTERM)); /* the starter's are as before */
}

static void test_signals_are_waited_for(void **state)
{
    thread_block_signals();
    assert_int_equal(kill(getpid(), SIGPIPE), 0);
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    assert_int_equal(thread_wait_signal(), SIGTERM);
    assert_int_equal(kill(getpid(), SIGINT), 0);
    assert_int_equal(thread_wait_signal(), SIGINT);
}

static void test_cpus(void **state)
{
    long all = sysconf(_SC_NPROCESSORS_CONF);

    assert_true(thread_cpus() >= 1);
    assert_true(thread_cpus() <= (unsigned)all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_bounds),
        cmocka_unit_test(test_closed_can_be_emptied_only),
        cmocka_unit_test(test_waiting_ends),
        cmocka_unit_test(test_many_threads_lose_nothing),
        cmocka_unit_test(test_closing_wakes_putters),
        cmocka_unit_test(test_threads_have_names_and_no_signals),
        cmocka_unit_test(test_signals_are_waited_for),
        cmocka_unit_test(test_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
