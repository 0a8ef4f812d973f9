/* The step's thread: requests in, answers out. What a step does is in runner_step.c. */
#include "trunk/runner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "trunk/runner_step.h"

static void answer_empty(struct link_request *q)
{
    Kapok__Reply reply = KAPOK__REPLY__INIT;
    link_server_reply(q, &reply, NULL, 0);
}

static void answer_sequence(struct link_request *q, int error, const char *why)
{
    if (error)
        link_server_refuse(q, error, "%s", why);
    else
        answer_empty(q);
}

static void run_open(struct runner *r, struct link_request *q)
{
    const Kapok__Open *o = q->msg.request->open;
    char why[256];
    int error = states_begin(r->pass.states, o->sequence, o->positions, why, sizeof why);
    answer_sequence(q, error, why);
}

static void run_fork(struct runner *r, struct link_request *q)
{
    const Kapok__Fork *f = q->msg.request->fork;
    const uint64_t from_to[2] = {f->from, f->to};
    char why[256];
    int error = states_fork(r->pass.states, from_to, f->positions, why, sizeof why);
    answer_sequence(q, error, why);
}

/* ---- steps ------------------------------------------------------------------------------- */

static void answer_kept(struct runner *r, struct link_request *q)
{
    Kapok__Reply reply = KAPOK__REPLY__INIT;
    struct iovec payload = {r->output, r->answer_bytes};
    reply.body_case = KAPOK__REPLY__BODY_STEP;
    reply.step = &r->answer;
    link_server_reply(q, &reply, &payload, 1);
}

static void set_running(struct runner *r, struct link_request *q)
{
    pthread_mutex_lock(&r->lock);
    r->running = true;
    r->number = q->msg.request->step->number;
    r->reply_to = q;
    pthread_mutex_unlock(&r->lock);
}

/* Gives whom the answer goes to by now. */
static struct link_request *set_idle(struct runner *r)
{
    pthread_mutex_lock(&r->lock);
    struct link_request *to = r->reply_to;
    r->running = false;
    r->reply_to = NULL;
    pthread_mutex_unlock(&r->lock);
    atomic_store(&r->cancelled, false);
    return to;
}

static void count_step(struct runner *r, int error, uint32_t rows)
{
    if (!error) {
        atomic_fetch_add(&r->steps, 1);
        atomic_fetch_add(&r->rows_done, rows);
    } else if (error == -ECANCELED) {
        atomic_fetch_add(&r->steps_cancelled, 1);
    } else {
        atomic_fetch_add(&r->steps_failed, 1);
    }
}

static void run_step(struct runner *r, struct link_request *q)
{
    uint64_t number = q->msg.request->step->number;
    char why[320];
    if (r->kept && r->kept_number == number) {
        atomic_fetch_add(&r->steps_repeated, 1);
        answer_kept(r, q);
        return;
    }
    uint32_t rows = (uint32_t)q->msg.request->step->n_sequence;
    set_running(r, q);
    int error = runner_step_run(r, &q->msg, why, sizeof why);
    struct link_request *to = set_idle(r);
    count_step(r, error, rows);
    if (error) {
        link_server_refuse(to, error, "%s", why);
    } else {
        r->kept = true;
        r->kept_number = number;
        answer_kept(r, to);
    }
    if (to != q)
        link_server_refuse(q, -ECANCELED, "a repeat of this step took over its answer");
}

static void run_request(struct runner *r, struct link_request *q)
{
    switch (q->msg.request->body_case) {
    case KAPOK__REQUEST__BODY_OPEN:
        run_open(r, q);
        break;
    case KAPOK__REQUEST__BODY_CLOSE:
        states_end(r->pass.states, q->msg.request->close->sequence);
        answer_empty(q);
        break;
    case KAPOK__REQUEST__BODY_FORK:
        run_fork(r, q);
        break;
    default:
        run_step(r, q);
    }
}

static void run(void *context)
{
    struct runner *r = context;
    void *request;
    while (!queue_take(&r->work, -1, &request))
        run_request(r, request);
}

int runner_start(struct runner *r, size_t requests)
{
    int error = queue_open(&r->work, requests);
    if (error)
        return error;
    pthread_mutex_init(&r->lock, NULL);
    error = thread_start(&r->thread, "step", run, r);
    if (error) {
        pthread_mutex_destroy(&r->lock);
        queue_free(&r->work);
    }
    return error;
}

void runner_stop(struct runner *r)
{
    atomic_store(&r->stopping, true);
    queue_close(&r->work);
    thread_join(&r->thread);
    pthread_mutex_destroy(&r->lock);
    queue_free(&r->work);
}

/* ---- from other threads ------------------------------------------------------------------ */

/* When this is a repeat of the running step, its answer goes there; gives whom it went to. */
static bool take_over(struct runner *r, struct link_request *q, struct link_request **ret_old)
{
    pthread_mutex_lock(&r->lock);
    bool same = r->running && r->number == q->msg.request->step->number;
    *ret_old = r->reply_to;
    if (same)
        r->reply_to = q;
    pthread_mutex_unlock(&r->lock);
    return same;
}

void runner_put(struct runner *r, struct link_request *q)
{
    struct link_request *old;
    if (q->msg.request->body_case == KAPOK__REQUEST__BODY_STEP && take_over(r, q, &old)) {
        /* The first request holds the step's arrays: it is answered when the step is over. */
        if (old->owner)
            link_server_refuse(old, -ECANCELED, "a repeat of this step took over its answer");
        q->owner = r;
        return;
    }
    if (queue_put(&r->work, q))
        link_server_refuse(q, -ECANCELED, "this trunk is stopping");
}

void runner_cancel(struct runner *r, uint64_t number)
{
    pthread_mutex_lock(&r->lock);
    if (r->running && r->number == number)
        atomic_store(&r->cancelled, true);
    pthread_mutex_unlock(&r->lock);
}

bool runner_wants(void *runner)
{
    struct runner *r = runner;
    return !atomic_load(&r->cancelled) && !atomic_load(&r->stopping);
}

void runner_describe(struct runner *r, char *text, size_t size)
{
    pthread_mutex_lock(&r->lock);
    if (r->running)
        snprintf(text, size, "step %llu, layer %u of %u, %u rows",
                 (unsigned long long)r->number, atomic_load(&r->layer), r->shape->layers,
                 atomic_load(&r->rows));
    else
        snprintf(text, size, "idle");
    pthread_mutex_unlock(&r->lock);
}
