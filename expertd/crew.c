/*
 * The list of ready wants is short-lived and strictly first come, first served. A worker takes
 * one band at a time, so that the last want of a request is spread over all of them.
 *
 * Lock order: a worker's, then a job's. The crew's own is never held with another.
 */
#include "expertd/crew.h"

#include <errno.h>
#include <string.h>

#include "expertd/cache.h"
#include "expertd/drive.h"

/* Per worker: the sum, then the scratch; both multiples of 64. */
static size_t sum_room(const struct shape *s, uint32_t rows)
{
    return ((size_t)rows * s->latent * sizeof(int64_t) + 63) / 64 * 64;
}

/* A band's columns of w2 and their scales, brought together for their checksum. */
static size_t column_bytes(const struct shape *s)
{
    return ((size_t)s->latent * s->band * 17 / 32 + 63) / 64 * 64;
}

static size_t each_bytes(const struct shape *s, uint32_t rows)
{
    return sum_room(s, rows) + column_bytes(s) + (ffn_scratch_bytes(s) + 63) / 64 * 64;
}

uint64_t crew_bytes(const struct shape *s, unsigned workers, uint32_t rows)
{
    return workers * (each_bytes(s, rows) + sizeof(struct crew_worker));
}

int crew_open(struct crew *c, struct job_pool *pool, const struct kernels *k, unsigned workers,
              struct memory *m)
{
    const struct shape *s = pool->shape;
    void *table, *area;

    *c = (struct crew){.pool = pool, .tally = pool->tally, .workers = workers};
    int r = memory_take(m, "workers", workers * sizeof *c->worker, &table);
    if (!r)
        r = memory_take(m, "worker sums and scratch", workers * each_bytes(s, pool->rows_most),
                        &area);
    if (r)
        return r;
    c->worker = table;
    for (unsigned i = 0; i < workers; i++) {
        struct crew_worker *w = &c->worker[i];
        uint8_t *at = (uint8_t *)area + i * each_bytes(s, pool->rows_most);
        w->crew = c;
        w->sum = (int64_t *)at;
        w->scratch = at + sum_room(s, pool->rows_most);
        ffn_init(&w->ffn, k, s, w->scratch + column_bytes(s));
        pthread_mutex_init(&w->lock, NULL);
    }
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->ready, NULL);
    return 0;
}

void crew_close(struct crew *c)
{
    if (!c->worker)
        return;
    for (unsigned i = 0; i < c->workers; i++)
        pthread_mutex_destroy(&c->worker[i].lock);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->ready);
    c->worker = NULL;
}

/* ---- sums ------------------------------------------------------------------------------ */

static void hand_over(struct crew_worker *w)
{
    struct job *j = w->job;
    size_t n = j->compute.rows * (size_t)w->crew->pool->shape->latent;
    pthread_mutex_lock(&j->lock);
    for (size_t i = 0; i < n; i++)
        j->sum[i] += w->sum[i];
    pthread_mutex_unlock(&j->lock);
    w->job = NULL;
}

static void turn_to(struct crew_worker *w, struct job *j)
{
    pthread_mutex_lock(&w->lock);
    if (w->job != j) {
        if (w->job)
            hand_over(w);
        size_t n = j->compute.rows * (size_t)w->crew->pool->shape->latent;
        memset(w->sum, 0, n * sizeof *w->sum);
        w->job = j;
    }
    pthread_mutex_unlock(&w->lock);
}

static void finish(struct crew *c, struct job *j)
{
    for (unsigned i = 0; i < c->workers; i++) {
        struct crew_worker *w = &c->worker[i];
        pthread_mutex_lock(&w->lock);
        if (w->job == j)
            hand_over(w);
        pthread_mutex_unlock(&w->lock);
    }
    job_answer(c->pool, j);
    job_put(c->pool, j);
}

void crew_close_want(struct crew *c, struct want *w)
{
    struct job *j = w->job;
    if (atomic_fetch_sub(&j->open, 1) == 1)
        finish(c, j);
}

/* ---- tiles ----------------------------------------------------------------------------- */

void crew_give(struct crew *c, struct want *w)
{
    w->todo = w->bands;
    w->open = (unsigned)__builtin_popcountll(w->bands);
    w->next = NULL;
    pthread_mutex_lock(&c->lock);
    if (c->first)
        c->last->next = w;
    else
        c->first = w;
    c->last = w;
    pthread_cond_broadcast(&c->ready);
    pthread_mutex_unlock(&c->lock);
}

/* The next tile, waited for; NULL when stopping. */
static struct want *take(struct crew *c, uint32_t *ret_band)
{
    pthread_mutex_lock(&c->lock);
    while (!c->first && !c->stopping)
        pthread_cond_wait(&c->ready, &c->lock);
    struct want *w = c->first;
    if (w) {
        *ret_band = (uint32_t)__builtin_ctzll(w->todo);
        w->todo &= w->todo - 1;
        if (!w->todo)
            c->first = w->next;
    }
    pthread_mutex_unlock(&c->lock);
    return w;
}

static void compute(struct crew_worker *worker, struct want *w, uint32_t band)
{
    struct job *j = w->job;
    uint32_t place[3] = {j->compute.layer, w->expert, band};
    double before = thread_now();

    struct region_tile tile = drive_tile(w->drive, w->entry, place);
    if (!drive_sound(w->drive, w->entry, place, &tile, worker->scratch)) {
        w->bad |= (uint64_t)1 << band;
        return;
    }
    turn_to(worker, j);
    int r = ffn_tile(&worker->ffn, &tile, j->z, w->pair, w->pairs, worker->sum);
    if (r == -EDOM)
        job_fail(j, r, "layer %u expert %u: a scale byte of 255, a NaN or an infinity",
                 place[0], w->expert);
    else if (r)
        job_fail(j, r, "layer %u expert %u: a product beyond 2^14", place[0], w->expert);
    j->ns_computing += (uint64_t)(1e9 * (thread_now() - before));
    tally_add(worker->crew->tally, TALLY_TILES_COMPUTED, 1);
}

static void work(void *context)
{
    struct crew_worker *worker = context;
    struct want *w;
    uint32_t band;

    while ((w = take(worker->crew, &band))) {
        struct drive *d = w->drive;
        if (!w->job->error)
            compute(worker, w, band);
        if (atomic_fetch_sub(&w->open, 1) != 1)
            continue;
        if (w->bad) {
            drive_bad(d, w);
        } else {
            drive_done(d, w); /* first: its slot may be wanted; the job is ours until closed */
            crew_close_want(worker->crew, w);
        }
    }
}

int crew_start(struct crew *c)
{
    for (; c->started < c->workers; c->started++) {
        int r = thread_start(&c->worker[c->started].thread, "compute", work,
                             &c->worker[c->started]);
        if (r)
            return r;
    }
    return 0;
}

void crew_stop(struct crew *c)
{
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_cond_broadcast(&c->ready);
    pthread_mutex_unlock(&c->lock);
    for (; c->started; c->started--)
        thread_join(&c->worker[c->started - 1].thread);
}
