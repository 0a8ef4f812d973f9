/*
 * One question to one stage, waited for through everything that can happen to a connection.
 *
 * A call that ended with an error of the link (not of the stage) is started again once the
 * stage is up; if it is another process by then, its sequences are gone: -ESTALE. A stage that
 * falls silent in a call is not believed any more: the call is dropped and started again when
 * it speaks. That may run a step twice at most in the stage's queue, and a step has a number.
 */
#include <errno.h>
#include <math.h>

#include "base/thread.h"
#include "coordinator/hub_private.h"

void hub_let_go(struct hub_stage *s)
{
    if (s->held)
        link_call_release(&s->call);
    s->held = false;
}

static bool is_up(struct hub_stage *s)
{
    struct link_status status;

    link_status(s->link, &status);
    return status.state == LINK_UP;
}

/* Until the stage can be asked. */
static int stage_await(struct hub *h, struct hub_stage *s)
{
    for (;;) {
        uint64_t seen = links_generation(h->options.links);
        struct link_status status;

        link_status(s->link, &status);
        if (status.state == LINK_UP)
            return status.instance == s->instance ? 0 : -ESTALE;
        if (!h->options.wanted(h->options.context))
            return hub_fail(h, -ECANCELED, "not wanted any more while %s was away",
                            link_address(s->link));
        links_wait(h->options.links, seen, HUB_POLL);
    }
}

/* Says Cancel, again and again until the step ends: one that overtakes its step does nothing.
 */
static void stage_stop(struct hub *h, struct hub_stage *s, uint64_t step)
{
    double now = thread_now();

    if (s->stopping || now - s->stopped < HUB_STOP_AGAIN)
        return;
    kapok__cancel__init(&s->stop_body);
    kapok__request__init(&s->stop_request);
    s->stop_body.number = step;
    s->stop_request.body_case = KAPOK__REQUEST__BODY_CANCEL;
    s->stop_request.cancel = &s->stop_body;
    s->stop.request = &s->stop_request;
    s->stop.seconds = 10;
    s->stop.done = &h->done;
    s->stop.owner = s;
    s->stopping = true;
    s->stopped = now;
    link_call_start(&s->stop);
}

/* Takes one ended call; true when it is this stage's question (and not some Cancel). */
static bool take_ended(struct hub *h, struct hub_stage *s)
{
    struct link_call *c;
    struct hub_stage *of;
    void *item;

    if (queue_take(&h->done, HUB_POLL, &item) != 0)
        return false;
    c = item;
    if (c == &s->call)
        return true;
    of = c->owner;
    link_call_release(c);
    of->stopping = false;
    return false;
}

/* Until the call ends; *ret_dropped when we gave it up because the stage fell silent. */
static void stage_finish(struct hub *h, struct hub_stage *s, uint64_t step, bool *ret_dropped)
{
    bool dropped = false;

    s->stopped = -INFINITY;
    while (!take_ended(h, s)) {
        if (!dropped && !is_up(s)) {
            dropped = true;
            link_call_cancel(&s->call);
        }
        if (step != 0 && !dropped && !h->options.wanted(h->options.context))
            stage_stop(h, s, step);
    }
    *ret_dropped = dropped;
}

static bool is_lost(int error, bool dropped)
{
    return error == -ECONNRESET || error == -ETIMEDOUT || error == -EBADMSG ||
           error == -EAGAIN || (error == -ECANCELED && dropped);
}

int hub_call(struct hub *h, size_t stage, Kapok__Request *request, const struct iovec *payload,
             uint64_t step)
{
    struct hub_stage *s = &h->stage[stage];

    hub_let_go(s);
    for (;;) {
        bool dropped;
        int error = stage_await(h, s);

        if (error != 0)
            return error;
        s->call.request = request;
        s->call.payload = payload;
        s->call.payload_parts = payload != NULL ? 1 : 0;
        s->call.seconds = HUB_CALL_SECONDS;
        s->call.done = &h->done;
        s->call.owner = s;
        link_call_start(&s->call);
        stage_finish(h, s, step, &dropped);
        s->held = true;
        error = s->call.error;
        if (error == 0)
            return 0;
        if (!is_lost(error, dropped)) {
            hub_fail(h, error, "%s: %s", link_address(s->link), s->call.reason);
            hub_let_go(s);
            return error == -ENOENT ? -ESTALE : error;
        }
        hub_let_go(s);
        pthread_mutex_lock(&h->lock);
        h->counts.resent++;
        pthread_mutex_unlock(&h->lock);
        if (!h->options.wanted(h->options.context))
            return hub_fail(h, -ECANCELED, "not wanted any more");
        links_wait(h->options.links, links_generation(h->options.links), HUB_POLL);
    }
}
