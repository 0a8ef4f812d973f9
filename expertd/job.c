/* Jobs are taken once, at start, for the largest request there may be. */
#include "expertd/job.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"

static size_t pairs_most(const struct shape *s, uint32_t rows)
{
    return (size_t)rows * s->chosen;
}

static size_t z_floats(const struct shape *s, uint32_t rows)
{
    return rows * kernels_padded(s->latent);
}

static size_t sum_bytes(const struct shape *s, uint32_t rows)
{
    return (size_t)rows * s->latent * sizeof(int64_t);
}

static size_t work_bytes(const struct shape *s, uint32_t rows, size_t want_room)
{
    size_t bytes = sizeof(struct job) + want_room * sizeof(struct want) +
                   pairs_most(s, rows) * sizeof(struct ffn_pair);
    return (bytes + 63) / 64 * 64;
}

uint64_t job_pool_bytes(const struct shape *s, size_t jobs, uint32_t rows, size_t want_room)
{
    return jobs * (z_floats(s, rows) * sizeof(float) + sum_bytes(s, rows) +
                   work_bytes(s, rows, want_room)) +
           (s->experts + 1) * sizeof(uint32_t);
}

static int take_memory(struct job_pool *p, struct memory *m, void *area[4])
{
    int r = memory_take(m, "requests",
                        p->jobs * work_bytes(p->shape, p->rows_most, p->want_room), &area[0]);
    if (!r)
        r = memory_take(m, "request inputs",
                        p->jobs * z_floats(p->shape, p->rows_most) * sizeof(float), &area[1]);
    if (!r)
        r = memory_take(m, "request sums", p->jobs * sum_bytes(p->shape, p->rows_most),
                        &area[2]);
    if (!r)
        r = memory_take(m, "expert places", (p->shape->experts + 1) * sizeof(uint32_t),
                        &area[3]);
    return r;
}

static void lay_out(struct job_pool *p, void *area[4])
{
    size_t each = work_bytes(p->shape, p->rows_most, p->want_room) - sizeof(struct job);
    uint8_t *work = (uint8_t *)area[0] + p->jobs * sizeof(struct job);
    p->job = area[0];
    p->place = area[3];
    for (size_t i = 0; i < p->jobs; i++, work += each) {
        struct job *j = &p->job[i];
        j->want = (struct want *)work;
        j->pair = (struct ffn_pair *)(j->want + p->want_room);
        j->z = (float *)area[1] + i * z_floats(p->shape, p->rows_most);
        j->sum = (int64_t *)((uint8_t *)area[2] + i * sum_bytes(p->shape, p->rows_most));
        pthread_mutex_init(&j->lock, NULL);
        queue_offer(&p->idle, j);
    }
}

int job_pool_open(struct job_pool *p, const struct shape *s, size_t jobs, uint32_t rows,
                  size_t want_room, struct memory *m)
{
    void *area[4];
    *p = (struct job_pool){.shape = s, .jobs = jobs, .want_room = want_room, .rows_most = rows};
    int r = take_memory(p, m, area);
    if (!r)
        r = queue_open(&p->idle, jobs);
    if (!r)
        lay_out(p, area);
    return r;
}

void job_pool_close(struct job_pool *p)
{
    if (!p->job)
        return;
    queue_close(&p->idle);
    queue_free(&p->idle);
    for (size_t i = 0; i < p->jobs; i++)
        pthread_mutex_destroy(&p->job[i].lock);
    p->job = NULL;
}

/* Counting sort of (row, expert, weight) by expert; rows stay in order. */
static void sort_pairs(struct job_pool *p, struct job *j)
{
    const struct compute *c = &j->compute;
    uint32_t *place = p->place;
    memset(place, 0, (p->shape->experts + 1) * sizeof *place);
    for (size_t i = 0; i < c->total; i++)
        place[c->experts[i] + 1]++;
    for (uint32_t e = 0; e < p->shape->experts; e++)
        place[e + 1] += place[e];
    size_t i = 0;
    for (uint32_t t = 0; t < c->rows; t++)
        for (uint32_t k = 0; k < c->counts[t]; k++, i++)
            j->pair[place[c->experts[i]]++] = (struct ffn_pair){t, c->weights[i]};
    memmove(place + 1, place, p->shape->experts * sizeof *place);
    place[0] = 0;
}

void job_begin(struct job_pool *p, struct job *j, const struct kernels *k)
{
    const struct shape *s = p->shape;
    size_t padded = kernels_padded(s->latent);
    j->begun = thread_now();
    sort_pairs(p, j);
    for (uint32_t t = 0; t < j->compute.rows; t++)
        k->lane_order(j->z + t * padded, j->compute.z + (size_t)t * s->latent, s->latent);
    memset(j->sum, 0, sum_bytes(s, j->compute.rows));
    j->wants = 0;
    j->error = 0;
    j->reason[0] = '\0';
    j->bytes_read = j->tiles_read = j->tiles_hit = j->ns_computing = j->us_reading = 0;
}

struct want *job_want(struct job *j, struct drive *d, uint32_t expert, uint64_t bands)
{
    struct want *w = &j->want[j->wants++];
    *w = (struct want){
        .note = {NOTE_WANT},
        .job = j,
        .drive = d,
        .expert = expert,
        .bands = bands,
    };
    return w;
}

void job_fail(struct job *j, int error, const char *format, ...)
{
    va_list list;
    pthread_mutex_lock(&j->lock);
    if (!j->error) {
        va_start(list, format);
        vsnprintf(j->reason, sizeof j->reason, format, list);
        va_end(list);
        j->error = error;
    }
    pthread_mutex_unlock(&j->lock);
}

static void answer_sum(struct job_pool *p, struct job *j)
{
    Kapok__ComputeReply counters = KAPOK__COMPUTE_REPLY__INIT;
    Kapok__Reply reply = KAPOK__REPLY__INIT;
    struct iovec payload = {j->sum, sum_bytes(p->shape, j->compute.rows)};

    counters.bytes_read = j->bytes_read;
    counters.tiles_read = j->tiles_read;
    counters.tiles_hit = j->tiles_hit;
    counters.us_queued = (uint64_t)(1e6 * (j->begun - j->request->arrived));
    counters.us_reading = j->us_reading;
    counters.us_computing = j->ns_computing / 1000;
    reply.body_case = KAPOK__REPLY__BODY_COMPUTE;
    reply.compute = &counters;
    link_server_reply(j->request, &reply, &payload, 1);
}

void job_answer(struct job_pool *p, struct job *j)
{
    tally_time(p->tally, TALLY_REQUEST, thread_now() - j->request->arrived);
    tally_add(p->tally, j->error ? TALLY_REQUESTS_FAILED : TALLY_REQUESTS, 1);
    tally_add(p->tally, TALLY_ROWS, j->compute.rows);
    if (j->error)
        link_server_refuse(j->request, j->error, "%s", j->reason);
    else
        answer_sum(p, j);
    j->request = NULL;
}

void job_put(struct job_pool *p, struct job *j)
{
    if (atomic_fetch_sub(&j->users, 1) == 1)
        queue_offer(&p->idle, j);
}
