/* Who gets which request: see the header. */
#include "trunk/reception.h"

#include <errno.h>

static void take_request(struct reception *r, struct link_request *q)
{
    Kapok__Reply empty = KAPOK__REPLY__INIT;
    switch (q->msg.request->body_case) {
    case KAPOK__REQUEST__BODY_HELLO:
        account_hello(&r->account, q);
        break;
    case KAPOK__REQUEST__BODY_STATS:
        account_stats(&r->account, q);
        break;
    case KAPOK__REQUEST__BODY_CANCEL:
        runner_cancel(r->account.runner, q->msg.request->cancel->number);
        link_server_reply(q, &empty, NULL, 0);
        break;
    case KAPOK__REQUEST__BODY_OPEN:
    case KAPOK__REQUEST__BODY_CLOSE:
    case KAPOK__REQUEST__BODY_FORK:
    case KAPOK__REQUEST__BODY_STEP:
        runner_put(r->account.runner, q);
        break;
    default:
        link_server_refuse(q, -EBADMSG,
                           "a trunk answers Hello, Stats, Cancel, Open, Close, Fork and Step "
                           "only");
    }
}

static void run(void *context)
{
    struct reception *r = context;
    void *request;
    while (!queue_take(r->incoming, -1, &request))
        take_request(r, request);
}

int reception_start(struct reception *r)
{
    return thread_start(&r->thread, "reception", run, r);
}

void reception_stop(struct reception *r)
{
    thread_join(&r->thread);
}
