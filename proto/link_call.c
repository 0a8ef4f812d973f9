/*
 * One request under way: a small machine driven by nng's callback.
 *
 *     IDLE --start--> SENDING --taken--> RECEIVING --answer--> IDLE, into the caller's queue
 *
 * Any error ends it at once. A call that is to end early gets its reason in `stop` and its aio
 * aborted; should the abort fall between two operations, the next one sees `stop`, and the
 * watcher aborts again at its next look.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/link_private.h"

static const char *stop_sentence(int error)
{
    switch (error) {
    case -ETIMEDOUT:
        return "no answer within the deadline";
    case -ECANCELED:
        return "the call was cancelled";
    case -ECONNRESET:
        return "the connection broke";
    case -EMSGSIZE:
        return "the payload is larger than the peer takes";
    default:
        return "the link failed";
    }
}

/* ---- ending -------------------------------------------------------------------------------
 */

static void set_error(struct link_call *c, int error, const char *reason)
{
    c->error = error;
    snprintf(c->reason, sizeof c->reason, "%s", reason);
}

/* Out of the list of calls under way; counts. The lock is held. */
static void leave(struct call_state *s, size_t received)
{
    struct link *l = s->call->link;
    *s->link_to = s->next;
    if (s->next)
        s->next->link_to = s->link_to;
    if (received) {
        l->answered = thread_now();
        l->status.bytes_received += received;
    }
    if (s->call->error == -ECONNRESET)
        link_private_mark(l, LINK_SILENT, "the connection broke");
    pthread_cond_broadcast(&l->links->ended);
}

static void finish(struct call_state *s, size_t received)
{
    struct link_call *c = s->call;
    struct links *ls = c->link->links;
    c->ended = thread_now();
    s->phase = CALL_IDLE;
    pthread_mutex_lock(&ls->lock);
    bool quiet = s->quiet;
    leave(s, received);
    pthread_mutex_unlock(&ls->lock);
    if (!quiet) {
        int r = queue_offer(c->done, c);
        assert(r != -EAGAIN); /* the caller promised room */
        (void)r;
    }
}

static void finish_error(struct call_state *s, int error)
{
    int stop = __atomic_load_n(&s->stop, __ATOMIC_ACQUIRE);
    set_error(s->call, stop ? stop : error, stop_sentence(stop ? stop : error));
    finish(s, 0);
}

static void finish_answer(struct call_state *s, nng_msg *answer)
{
    struct link_call *c = s->call;
    const char *why = "";
    size_t bytes = nng_msg_len(answer);
    s->answer = answer;
    int r = msg_reply_open(&c->reply, nng_msg_body(answer), bytes, &why);
    if (r) {
        set_error(c, r, why);
    } else if (c->reply.reply->number != s->number || c->reply.reply->error > 0) {
        set_error(c, -EBADMSG, "the reply is not one to this request");
    } else {
        set_error(c, c->reply.reply->error, c->reply.reply->reason);
        link_private_align(&c->reply);
    }
    finish(s, bytes);
}

/* ---- the machine --------------------------------------------------------------------------
 */

static void advance(void *context)
{
    struct call_state *s = context;
    int error = link_private_errno(nng_aio_result(s->aio));
    if (s->phase == CALL_SENDING && error) {
        nng_msg_free(nng_aio_get_msg(s->aio)); /* after a failed send it is still ours */
        nng_aio_set_msg(s->aio, NULL);
        finish_error(s, error);
    } else if (error) {
        finish_error(s, error);
    } else if (s->phase == CALL_RECEIVING) {
        finish_answer(s, nng_aio_get_msg(s->aio));
    } else if (__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
        finish_error(s, -ECANCELED);
    } else {
        s->phase = CALL_RECEIVING;
        nng_ctx_recv(s->ctx, s->aio);
    }
}

int link_call_open(struct link_call *c, struct link *l)
{
    struct call_state *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    if (nng_aio_alloc(&s->aio, advance, s)) {
        free(s);
        return -ENOMEM;
    }
    nng_aio_set_timeout(s->aio, NNG_DURATION_INFINITE); /* the watcher keeps the deadlines */
    int r = nng_ctx_open(&s->ctx, l->socket);
    if (r) {
        nng_aio_free(s->aio);
        free(s);
        return link_private_errno(r);
    }
    s->call = c;
    *c = (struct link_call){.link = l, .private_state = s};
    return 0;
}

void link_call_close(struct link_call *c)
{
    struct call_state *s = c->private_state;
    if (!s)
        return;
    pthread_mutex_lock(&c->link->links->lock);
    s->quiet = true;
    pthread_mutex_unlock(&c->link->links->lock);
    link_call_cancel(c);
    nng_aio_stop(s->aio); /* waits for the callback, and refuses another operation */
    if (s->phase != CALL_IDLE)
        finish_error(s, -ECANCELED); /* its callback was about to receive: refused, silently */
    link_call_release(c);
    nng_ctx_close(s->ctx);
    nng_aio_free(s->aio);
    free(s);
    c->private_state = NULL;
}

/* The parts of a request that every one has. */
static void sign(struct call_state *s)
{
    struct link_call *c = s->call;
    struct links_options *o = &c->link->links->options;
    c->request->secret = (ProtobufCBinaryData){SECRET_BYTES, o->secret};
    c->request->model = (ProtobufCBinaryData){CHECKPOINT_DIGEST, o->model};
    c->request->version = MSG_VERSION;
    c->request->number = s->number;
}

static void enter(struct call_state *s)
{
    struct link *l = s->call->link;
    struct links *ls = l->links;
    pthread_mutex_lock(&ls->lock);
    s->number = ++ls->numbers;
    s->stop = 0;
    s->next = ls->under_way;
    s->link_to = &ls->under_way;
    if (s->next)
        s->next->link_to = &s->next;
    ls->under_way = s;
    l->status.requests++;
    pthread_mutex_unlock(&ls->lock);
}

/* A message above the peer's limit would only break the connection. */
static bool exceeds_peer(const struct link_call *c)
{
    struct link *l = c->link;
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->payload_parts; i++)
        bytes += c->payload[i].iov_len;
    pthread_mutex_lock(&l->links->lock);
    uint64_t most = l->answer ? l->answer->hello->payload_most : 0;
    pthread_mutex_unlock(&l->links->lock);
    return most && bytes > most;
}

void link_call_start(struct link_call *c)
{
    struct call_state *s = c->private_state;
    nng_msg *message = NULL;
    assert(s->phase == CALL_IDLE && !s->answer);
    c->started = thread_now();
    enter(s);
    if (exceeds_peer(c)) {
        finish_error(s, -EMSGSIZE);
        return;
    }
    sign(s);
    int r = link_private_request(&message, c->request, c->payload, c->payload_parts);
    if (r) {
        finish_error(s, r);
        return;
    }
    pthread_mutex_lock(&c->link->links->lock);
    c->link->status.bytes_sent += nng_msg_len(message);
    pthread_mutex_unlock(&c->link->links->lock);
    s->phase = CALL_SENDING;
    nng_aio_set_msg(s->aio, message);
    nng_ctx_send(s->ctx, s->aio);
}

void link_call_cancel(struct link_call *c)
{
    struct call_state *s = c->private_state;
    __atomic_store_n(&s->stop, -ECANCELED, __ATOMIC_RELEASE);
    nng_aio_abort(s->aio, NNG_ECANCELED);
}

void link_call_release(struct link_call *c)
{
    struct call_state *s = c->private_state;
    msg_close(&c->reply);
    if (s->answer)
        nng_msg_free(s->answer);
    s->answer = NULL;
}
