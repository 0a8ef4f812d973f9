/* A server that echoes and somebody who asks: see the header. */
#include "tests/proto/link_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void echo_hello(struct echo *e, struct link_request *r)
{
    Kapok__Reply reply = KAPOK__REPLY__INIT;
    Kapok__HelloReply hello = KAPOK__HELLO_REPLY__INIT;
    hello.role = (char *)"echo";
    hello.instance = e->instance;
    hello.payload_most = e->payload_told;
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

void echo_open(struct echo *e, const char *address, uint8_t secret, uint8_t model)
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

void echo_close(struct echo *e)
{
    queue_close(&e->incoming);
    thread_join(&e->thread);
    link_server_close(e->server);
    queue_free(&e->incoming);
}

void asker_open(struct asker *a, const char *address)
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

void asker_close(struct asker *a)
{
    links_close(a->links);
    queue_free(&a->done);
}

void await_state(struct asker *a, enum link_state wanted)
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

void question_open(struct question *q, struct asker *a, unsigned ms, const void *bytes,
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

struct link_call *next_done(struct asker *a)
{
    void *item = NULL;
    assert_int_equal(queue_take(&a->done, 30, &item), 0);
    return item;
}

int serve(const char *address)
{
    struct echo e;
    echo_open(&e, address, 1, 2);
    printf("%s\n", link_server_address(e.server));
    fflush(stdout);
    thread_join(&e.thread);
    return 0;
}

/* Starts one and gives its address. */
pid_t child_start(const char *address, char ret_address[64])
{
    int out[2];
    assert_int_equal(pipe(out), 0);
    pid_t child = fork();
    if (!child) {
        dup2(out[1], 1);
        close(out[0]);
        char self[512]; /* read, not executed as a link: valgrind knows only that */
        ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
        self[length < 0 ? 0 : length] = 0;
        execl(self, self, "--serve", address, (char *)NULL);
        _exit(1);
    }
    close(out[1]);
    ssize_t n = read(out[0], ret_address, 63);
    close(out[0]);
    assert_true(n > 0);
    ret_address[n - 1] = 0;
    return child;
}

void child_kill(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}
