/*
 * The answering side: N contexts of one REP socket, each a small machine in nng's callbacks.
 *
 *     RECEIVING --bad request--> ANSWERING --sent--> RECEIVING
 *     RECEIVING --good request--> the program's queue ... link_server_reply() --> ANSWERING
 *
 * A context serves one request at a time, so the number of contexts bounds what is under way.
 */
#include "proto/link_server.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/link_private.h"

enum context_phase { CONTEXT_RECEIVING, CONTEXT_HELD, CONTEXT_ANSWERING };

struct server_context {
    struct link_server *server;
    nng_ctx ctx;
    nng_aio *aio;
    bool open;
    enum context_phase phase;
    nng_msg *message; /* what request.msg points into */
    struct link_request request;
};

struct link_server {
    struct link_server_options options;
    nng_socket socket;
    bool open;
    char address[280];
    uint64_t refused;
    pthread_rwlock_t stopping; /* nng must not be given work while its socket closes */
    bool stopped;
    struct server_context context[]; /* options.requests */
};

/* Starts the next operation of a context, unless the server has stopped: then the context, and
 * the message it would send, are left to link_server_close(). */
static void proceed(struct server_context *c, enum context_phase phase)
{
    pthread_rwlock_rdlock(&c->server->stopping);
    c->phase = phase;
    if (!c->server->stopped && phase == CONTEXT_RECEIVING)
        nng_ctx_recv(c->ctx, c->aio);
    else if (!c->server->stopped)
        nng_ctx_send(c->ctx, c->aio);
    pthread_rwlock_unlock(&c->server->stopping);
}

static void receive(struct server_context *c)
{
    proceed(c, CONTEXT_RECEIVING);
}

static void release(struct server_context *c)
{
    msg_close(&c->request.msg);
    if (c->message)
        nng_msg_free(c->message);
    c->message = NULL;
    c->request.owner = NULL;
}

static void answer(struct server_context *c, Kapok__Reply *reply, const struct iovec *payload,
                   size_t parts)
{
    nng_msg *message;
    int r = link_private_reply(&message, reply, payload, parts);
    release(c);
    if (r) { /* no memory for an answer: the client's deadline tells it */
        receive(c);
        return;
    }
    nng_aio_set_msg(c->aio, message);
    proceed(c, CONTEXT_ANSWERING);
}

static void answer_error(struct server_context *c, uint64_t number, int error,
                         const char *sentence)
{
    Kapok__Reply reply = KAPOK__REPLY__INIT;
    reply.number = number;
    reply.error = error;
    reply.reason = (char *)(uintptr_t)sentence;
    answer(c, &reply, NULL, 0);
}

/* What is wrong with who asks; 0 when nothing is. The sentence is read on the other side. */
static int check_sender(const struct link_server *s, const Kapok__Request *r, char *ret_why,
                        size_t size)
{
    char here[33], there[33];
    if (r->secret.len != SECRET_BYTES || !secret_equal(r->secret.data, s->options.secret)) {
        snprintf(ret_why, size, "the request does not show this deployment's secret");
        return -EACCES;
    }
    if (r->version != MSG_VERSION) {
        snprintf(ret_why, size, "the request is of protocol version %u, expected version %d",
                 r->version, MSG_VERSION);
        return -EPROTO;
    }
    if (r->model.len != CHECKPOINT_DIGEST) {
        snprintf(ret_why, size, "the request names no model");
        return -EPROTO;
    }
    if (memcmp(r->model.data, s->options.model, CHECKPOINT_DIGEST)) {
        checkpoint_digest_text(s->options.model, here);
        checkpoint_digest_text(r->model.data, there);
        snprintf(ret_why, size, "the request is for the model of digest %s, served is %s",
                 there, here);
        return -EPROTO;
    }
    if (r->body_case == KAPOK__REQUEST__BODY__NOT_SET) {
        snprintf(ret_why, size, "the request's kind is unknown");
        return -EBADMSG;
    }
    return 0;
}

static void accept_message(struct server_context *c, nng_msg *message)
{
    struct link_server *s = c->server;
    struct msg *m = &c->request.msg;
    const char *why = NULL;
    char sentence[160];
    uint64_t number = 0;
    int error = msg_request_open(m, nng_msg_body(message), nng_msg_len(message), &why);
    c->message = message;
    if (error) {
        snprintf(sentence, sizeof sentence, "%s", why);
    } else {
        number = m->request->number;
        error = check_sender(s, m->request, sentence, sizeof sentence);
    }
    if (error) {
        __atomic_add_fetch(&s->refused, 1, __ATOMIC_RELAXED);
        answer_error(c, number, error, sentence);
        return;
    }
    link_private_align(m);
    c->phase = CONTEXT_HELD;
    c->request.arrived = thread_now();
    c->request.private_state = c;
    int r = queue_offer(s->options.incoming, &c->request);
    assert(r != -EAGAIN); /* room for every context was promised */
    (void)r;
}

static void advance(void *context)
{
    struct server_context *c = context;
    int r = nng_aio_result(c->aio);
    if (c->phase == CONTEXT_ANSWERING) {
        if (r) {
            nng_msg_free(nng_aio_get_msg(c->aio));
            nng_aio_set_msg(c->aio, NULL);
        }
        if (r != NNG_ECLOSED)
            receive(c);
    } else if (r == NNG_ECLOSED || r == NNG_ECANCELED) {
        return; /* the server closes */
    } else if (r) {
        receive(c);
    } else {
        accept_message(c, nng_aio_get_msg(c->aio));
    }
}

/* ---- opening and closing ------------------------------------------------------------------
 */

static int contexts_open(struct link_server *s)
{
    for (unsigned i = 0; i < s->options.requests; i++) {
        struct server_context *c = &s->context[i];
        c->server = s;
        if (nng_aio_alloc(&c->aio, advance, c))
            return -ENOMEM;
        nng_aio_set_timeout(c->aio, NNG_DURATION_INFINITE);
        int r = nng_ctx_open(&c->ctx, s->socket);
        if (r)
            return link_private_errno(r);
        c->open = true;
    }
    return 0;
}

/* Listens and puts the port the kernel gave into the address. */
static int listen_on(struct link_server *s)
{
    nng_listener listener;
    int port = 0;
    int r = nng_listener_create(&listener, s->socket, s->options.address);
    if (!r)
        r = nng_listener_start(listener, 0);
    if (!r)
        r = nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port);
    if (r)
        return link_private_errno(r);
    const char *colon = strrchr(s->options.address, ':');
    snprintf(s->address, sizeof s->address, "%.*s:%d", (int)(colon - s->options.address),
             s->options.address, port);
    return 0;
}

int link_server_open(struct link_server **ret_server, const struct link_server_options *o,
                     struct problems *p)
{
    int r = link_address_check(o->address, p);
    if (r)
        return r;
    struct link_server *s = calloc(1, sizeof *s + o->requests * sizeof s->context[0]);
    if (!s)
        return -ENOMEM;
    s->options = *o;
    pthread_rwlock_init(&s->stopping, NULL);
    r = link_private_errno(nng_rep0_open(&s->socket));
    s->open = !r;
    if (!r) {
        nng_socket_set_size(s->socket, NNG_OPT_RECVMAXSZ, o->payload_most + MSG_HEADER_MOST);
        r = contexts_open(s);
    }
    if (!r)
        r = listen_on(s);
    if (r) {
        problems_add(p, "cannot listen on %s: %s", o->address, strerror(-r));
        link_server_close(s);
        return r;
    }
    for (unsigned i = 0; i < o->requests; i++)
        receive(&s->context[i]);
    *ret_server = s;
    return 0;
}

void link_server_stop(struct link_server *s)
{
    pthread_rwlock_wrlock(&s->stopping);
    bool first = !s->stopped;
    s->stopped = true;
    pthread_rwlock_unlock(&s->stopping);
    if (first && s->open)
        nng_close(s->socket);
}

/* A message that was to be sent when the server stopped is still ours. */
static void drop_unsent(struct server_context *c)
{
    nng_msg *unsent = c->phase == CONTEXT_ANSWERING ? nng_aio_get_msg(c->aio) : NULL;
    if (unsent)
        nng_msg_free(unsent);
}

void link_server_close(struct link_server *s)
{
    if (!s)
        return;
    link_server_stop(s);
    for (unsigned i = 0; i < s->options.requests; i++) {
        struct server_context *c = &s->context[i];
        if (!c->aio)
            continue;
        nng_aio_stop(c->aio);
        drop_unsent(c);
        nng_aio_free(c->aio);
        release(c);
    }
    pthread_rwlock_destroy(&s->stopping);
    free(s);
}

const char *link_server_address(const struct link_server *s)
{
    return s->address;
}

uint64_t link_server_refused(const struct link_server *s)
{
    return __atomic_load_n(&s->refused, __ATOMIC_RELAXED);
}

/* ---- answering ----------------------------------------------------------------------------
 */

void link_server_reply(struct link_request *r, Kapok__Reply *reply, const struct iovec *payload,
                       size_t payload_parts)
{
    reply->number = r->msg.request->number;
    answer(r->private_state, reply, payload, payload_parts);
}

void link_server_refuse(struct link_request *r, int error, const char *format, ...)
{
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    answer_error(r->private_state, r->msg.request->number, error, sentence);
}
