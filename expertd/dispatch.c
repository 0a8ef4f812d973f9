/* Requests become wants: the sizes were checked by compute_open(), here it is what we hold. */
#include "expertd/dispatch.h"

#include <errno.h>
#include <stdlib.h>

#include "expertd/report.h"

static const char stopping[] = "this expertd is stopping";

/* ---- short requests -------------------------------------------------------------------- */

static void answer_empty(struct link_request *r)
{
    Kapok__Reply reply = KAPOK__REPLY__INIT;
    link_server_reply(r, &reply, NULL, 0);
}

static void answer_hint(struct dispatch *d, struct link_request *r)
{
    const Kapok__Hint *h = r->msg.request->hint;
    const struct shape *s = d->shape;
    if (h->layer >= s->layers || !shape_is_moe(s, h->layer)) {
        link_server_refuse(r, -EBADMSG, "Hint: layer %u has no experts", h->layer);
        return;
    }
    for (size_t i = 0; i < h->n_experts; i++)
        if (h->experts[i] >= s->experts) {
            link_server_refuse(r, -EBADMSG, "Hint: expert %u of %u", h->experts[i], s->experts);
            return;
        }
    for (size_t i = 0; i < d->drives; i++)
        drive_hint(&d->drive[i], h->layer, h->experts, h->n_experts);
    answer_empty(r);
}

static void take_request(struct dispatch *d, struct link_request *r)
{
    switch (r->msg.request->body_case) {
    case KAPOK__REQUEST__BODY_HELLO:
        report_hello(d, r);
        break;
    case KAPOK__REQUEST__BODY_STATS:
        report_stats(d, r);
        break;
    case KAPOK__REQUEST__BODY_HINT:
        answer_hint(d, r);
        break;
    case KAPOK__REQUEST__BODY_COMPUTE:
        if (queue_put(&d->computes, r))
            link_server_refuse(r, -ECANCELED, stopping);
        break;
    default:
        link_server_refuse(r, -EBADMSG,
                           "an expertd answers Hello, Stats, Hint and Compute only");
    }
}

static void run_intake(void *context)
{
    struct dispatch *d = context;
    void *r;
    while (!queue_take(d->incoming, -1, &r))
        take_request(d, r);
}

/* ---- Compute --------------------------------------------------------------------------- */

/* Wants for the bands of one expert, from every drive that holds some; bands left over. */
static uint64_t want_expert(struct dispatch *d, struct job *j, uint32_t expert)
{
    uint64_t left = j->compute.bands;
    for (size_t i = 0; left && i < d->drives; i++) {
        uint64_t bands = left & source_bands(d->drive[i].source, j->compute.layer, expert);
        if (!bands)
            continue;
        struct want *w = job_want(j, &d->drive[i], expert, bands);
        w->pair = j->pair + d->pool->place[expert];
        w->pairs = d->pool->place[expert + 1] - d->pool->place[expert];
        left &= ~bands;
    }
    return left;
}

static int cut(struct dispatch *d, struct job *j)
{
    const uint32_t *place = d->pool->place;
    for (uint32_t e = 0; e < d->shape->experts; e++) {
        uint64_t left = place[e + 1] > place[e] ? want_expert(d, j, e) : 0;
        if (!left)
            continue;
        link_server_refuse(j->request, -ENOENT, "layer %u expert %u band %d is not held here",
                           j->compute.layer, e, __builtin_ctzll(left));
        return -ENOENT;
    }
    return 0;
}

static int by_position(const void *a, const void *b)
{
    const struct want *x = a, *y = b;
    uint32_t layer = x->job->compute.layer;
    if (x->drive != y->drive)
        return x->drive < y->drive ? -1 : 1;
    uint64_t p = source_position(x->drive->source, layer, x->expert);
    uint64_t q = source_position(y->drive->source, layer, y->expert);
    return p < q ? -1 : p > q;
}

static void send_wants(struct dispatch *d, struct job *j)
{
    size_t wants = j->wants;
    j->open = (unsigned)wants;
    j->users = (unsigned)wants + 1;
    if (!wants) {
        job_answer(d->pool, j);
        job_put(d->pool, j);
        return;
    }
    qsort(j->want, wants, sizeof *j->want, by_position);
    for (size_t i = 0; i < wants; i++)
        j->want[i].opens = !i || j->want[i].drive != j->want[i - 1].drive;
    for (size_t i = 0; i < wants; i++)
        drive_want(j->want[i].drive, &j->want[i]);
}

static int open_job(struct dispatch *d, struct job *j)
{
    const char *why;
    if (compute_open(&j->compute, &j->request->msg, d->shape, &why)) {
        link_server_refuse(j->request, -EBADMSG, "%s", why);
        return -EBADMSG;
    }
    if (j->compute.rows > d->pool->rows_most ||
        j->compute.total > (size_t)d->pool->rows_most * d->shape->chosen) {
        link_server_refuse(j->request, -EMSGSIZE,
                           "Compute: %u rows with %zu choices, at most %u rows of %u are taken",
                           j->compute.rows, j->compute.total, d->pool->rows_most,
                           d->shape->chosen);
        return -EMSGSIZE;
    }
    job_begin(d->pool, j, d->kernels);
    return cut(d, j);
}

static void run_opener(void *context)
{
    struct dispatch *d = context;
    void *request, *idle;
    while (!queue_take(&d->computes, -1, &request)) {
        if (queue_take(&d->pool->idle, -1, &idle)) {
            link_server_refuse(request, -ECANCELED, stopping);
            continue;
        }
        struct job *j = idle;
        j->request = request;
        if (open_job(d, j)) {
            tally_add(d->tally, TALLY_REQUESTS_FAILED, 1);
            queue_offer(&d->pool->idle, j);
        } else {
            send_wants(d, j);
        }
    }
}

/* ---- threads --------------------------------------------------------------------------- */

int dispatch_start(struct dispatch *d, size_t requests)
{
    int r = queue_open(&d->computes, requests);
    if (r)
        return r;
    r = thread_start(&d->opener, "opener", run_opener, d);
    if (r) {
        queue_free(&d->computes);
        return r;
    }
    r = thread_start(&d->intake, "intake", run_intake, d);
    if (r) {
        queue_close(&d->computes);
        thread_join(&d->opener);
        queue_free(&d->computes);
    }
    return r;
}

void dispatch_stop(struct dispatch *d)
{
    void *job;
    thread_join(&d->intake);
    queue_close(&d->computes);
    thread_join(&d->opener);
    for (size_t i = 0; i < d->pool->jobs; i++)
        queue_take(&d->pool->idle, -1, &job);
    queue_free(&d->computes);
}
