/*
 * The stream of blocks: a feeder thread reads pieces in the order of the pass, ahead of the
 * step; the step takes them in the same order.
 *
 * Who owns what. The cut's pieces are made at open; `claimed` and `present` change under the
 * lock. A piece that has to be read becomes a *flight*: an entry of a fifo
 * with a buffer, which is its home when it is pinned and a run of the ring otherwise. Flights
 * are made by the feeder, in order, and ended by the step, in order, so the ring needs no more
 * than a head and a tail. A buffer belongs to the disk from submit until it is reaped.
 *
 * Decided: pieces that are present never become flights, so a fully pinned stage costs the step
 * one lock per block. The feeder runs at most into the pass after the one the step is in, and
 * not past its layers, because only the step knows whether that pass will want the head.
 */
#include "trunk/weights.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/thread.h"
#include "trunk/weights_cut.h"

#define WEIGHTS_FLIGHTS    512
#define WEIGHTS_PATIENCE   0.01 /* seconds the feeder waits for a read before it looks around */
#define WEIGHTS_RING_LEAST 4    /* largest blocks the smallest ring holds */

struct flight {
    struct disk_read read;
    size_t piece;
    uint64_t pass;
    size_t ring_bytes; /* of the ring, with what was skipped at its end */
    bool ready;
};

struct position {
    uint64_t pass;
    size_t piece;
};

struct weights {
    const struct checkpoint *checkpoint;
    const struct weights_plan *plan;
    struct weights_cut cut;
    int *fd; /* by shard, -1: not used */
    uint8_t *ring;
    size_t ring_bytes;

    /* The feeder's: */
    struct thread feeder;
    struct disk *disk;

    /* Shared, under the lock: */
    pthread_mutex_t lock;
    pthread_cond_t to_feeder, to_step;
    struct flight flight[WEIGHTS_FLIGHTS];
    uint64_t made, taken,
        ended; /* flights: [ended, taken) the step holds, [taken, made) wait */
    size_t ring_head, ring_used;
    struct position next; /* what the feeder looks at */
    struct position step; /* what the step takes next */
    bool with_head;       /* of pass step.pass */
    bool rewinding, stopping, started;
    struct weights_counters counters;
    char error[320];
};

uint64_t weights_floor(const struct weights_plan *plan)
{
    struct weights_cut cut;
    if (weights_cut_open(&cut, plan))
        return 0;
    uint64_t floor = (uint64_t)cut.span_most * WEIGHTS_RING_LEAST;
    weights_cut_close(&cut);
    return floor;
}

/* ---- opening ------------------------------------------------------------------------------
 */

static int open_shards(struct weights *w, bool buffered, struct problems *p)
{
    const struct safetensors *s = w->checkpoint->tensors;
    size_t shards = safetensors_shards(s);
    w->fd = malloc(shards * sizeof *w->fd);
    if (!w->fd)
        return -ENOMEM;
    for (size_t i = 0; i < shards; i++)
        w->fd[i] = -1;
    for (size_t i = 0; i < w->plan->entries; i++) {
        size_t shard = w->plan->entry[i].shard;
        if (w->fd[shard] >= 0)
            continue;
        int r = disk_file(safetensors_path(s, shard), buffered, &w->fd[shard]);
        if (r) {
            problems_add(p, "%s: cannot be opened for %s reading: %s%s",
                         safetensors_path(s, shard), buffered ? "buffered" : "direct",
                         strerror(-r),
                         r == -EINVAL ? " (--buffered does without O_DIRECT)" : "");
            return r;
        }
    }
    return 0;
}

static int take_memory(struct weights *w, const struct weights_options *o, struct memory *m,
                       struct problems *p)
{
    void *area;
    if (o->ring < (uint64_t)w->cut.span_most * WEIGHTS_RING_LEAST) {
        problems_add(p, "the weight ring has %llu bytes, needs at least %llu",
                     (unsigned long long)o->ring,
                     (unsigned long long)w->cut.span_most * WEIGHTS_RING_LEAST);
        return -ENOMEM;
    }
    w->ring_bytes = (size_t)disk_floor(o->ring);
    weights_cut_pin(&w->cut, o->pinned);
    int r = memory_take(m, "weight ring", w->ring_bytes, &area);
    if (!r) {
        w->ring = area;
        r = memory_take(m, "pinned weights", w->cut.pinned_bytes, &area);
    }
    if (r) {
        problems_add(p, "no memory for the weights: %s", strerror(-r));
        return r;
    }
    weights_cut_settle(&w->cut, area);
    return 0;
}

int weights_open(struct weights **ret_w, const struct checkpoint *c,
                 const struct weights_plan *plan, const struct weights_options *o,
                 struct memory *m, struct problems *p)
{
    struct weights *w = calloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    w->checkpoint = c;
    w->plan = plan;
    w->next.pass = 1; /* the first one that can begin */
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->to_feeder, NULL);
    pthread_cond_init(&w->to_step, NULL);
    int r = weights_cut_open(&w->cut, plan);
    if (!r)
        r = open_shards(w, o->buffered, p);
    if (!r)
        r = take_memory(w, o, m, p);
    if (!r)
        r = disk_open(&w->disk, o->depth);
    if (r) {
        weights_close(w);
        return r;
    }
    *ret_w = w;
    return 0;
}

/* ---- the feeder ---------------------------------------------------------------------------
 */

/* Room for `span` bytes in the ring, in one run; NULL when the step must give first. */
static uint8_t *ring_take(struct weights *w, size_t span, size_t *ret_bytes)
{
    bool wraps = w->ring_head + span > w->ring_bytes;
    size_t skipped = wraps ? w->ring_bytes - w->ring_head : 0;
    if (w->ring_used + skipped + span > w->ring_bytes)
        return NULL;
    size_t start = wraps ? 0 : w->ring_head;
    w->ring_head = start + span;
    w->ring_used += skipped + span;
    *ret_bytes = skipped + span;
    return w->ring + start;
}

/* Brings `next` to a piece that has to be read. False: there is none until the step goes on. */
static bool next_found(struct weights *w)
{
    struct position *n = &w->next;
    if (n->pass < w->step.pass || (n->pass == w->step.pass && n->piece < w->step.piece))
        *n = w->step; /* everything the feeder did not look at was present */
    for (;;) {
        bool ahead = n->pass > w->step.pass;
        size_t end = !ahead && w->with_head ? w->cut.pieces : w->cut.head;
        if (n->piece >= end && ahead)
            return false;
        if (n->piece >= end)
            *n = (struct position){n->pass + 1, 0};
        else if (w->cut.piece[n->piece].claimed)
            n->piece++;
        else
            return true;
    }
}

/* The next flight, ready for the disk; NULL when nothing can be started now. */
static struct flight *flight_make(struct weights *w)
{
    if (w->made - w->ended == WEIGHTS_FLIGHTS || !next_found(w))
        return NULL;
    struct weights_piece *piece = &w->cut.piece[w->next.piece];
    size_t ring_bytes = 0;
    uint8_t *buffer = piece->home;
    if (!piece->pinned)
        buffer = ring_take(w, piece->span, &ring_bytes);
    if (!buffer)
        return NULL;
    piece->claimed = piece->pinned;
    struct flight *f = &w->flight[w->made++ % WEIGHTS_FLIGHTS];
    *f = (struct flight){
        .read = {.fd = w->fd[w->plan->entry[piece->entry].shard],
                 .offset = piece->offset,
                 .length = piece->length,
                 .buffer = buffer},
        .piece = w->next.piece,
        .pass = w->next.pass,
        .ring_bytes = ring_bytes,
    };
    f->read.owner = f;
    w->next.piece++;
    return f;
}

static void flight_land(struct weights *w, struct disk_read *read)
{
    struct flight *f = read->owner;
    struct weights_piece *piece = &w->cut.piece[f->piece];
    f->ready = true;
    w->counters.bytes_read += read->fetched;
    if (piece->pinned) {
        piece->present = !read->error;
        piece->claimed = !read->error;
        if (piece->present)
            w->counters.bytes_pinned += piece->span;
    }
    pthread_cond_signal(&w->to_step);
}

/* Waits for one read a little while; the lock is free meanwhile. */
static void feeder_reap(struct weights *w)
{
    pthread_mutex_unlock(&w->lock);
    struct disk_read *read = disk_reap(w->disk, WEIGHTS_PATIENCE);
    pthread_mutex_lock(&w->lock);
    if (read)
        flight_land(w, read);
}

static void feeder_rewind(struct weights *w)
{
    while (disk_pending(w->disk))
        feeder_reap(w);
    w->ended = w->taken = w->made;
    w->ring_head = w->ring_used = 0;
    w->next = (struct position){w->step.pass + 1, 0};
    w->rewinding = false;
    pthread_cond_signal(&w->to_step);
}

static void feeder_run(void *context)
{
    struct weights *w = context;
    pthread_mutex_lock(&w->lock);
    while (!w->stopping) {
        struct flight *f = w->rewinding ? NULL : flight_make(w);
        if (w->rewinding) {
            feeder_rewind(w);
        } else if (f) {
            pthread_mutex_unlock(&w->lock);
            disk_submit(w->disk, &f->read);
            pthread_mutex_lock(&w->lock);
        } else if (disk_pending(w->disk)) {
            feeder_reap(w);
        } else {
            pthread_cond_wait(&w->to_feeder, &w->lock);
        }
    }
    while (disk_pending(w->disk))
        feeder_reap(w);
    pthread_mutex_unlock(&w->lock);
}

int weights_start(struct weights *w)
{
    int r = thread_start(&w->feeder, "feeder", feeder_run, w);
    w->started = !r;
    return r;
}

void weights_close(struct weights *w)
{
    if (!w)
        return;
    if (w->started) {
        pthread_mutex_lock(&w->lock);
        w->stopping = true;
        pthread_cond_signal(&w->to_feeder);
        pthread_mutex_unlock(&w->lock);
        thread_join(&w->feeder);
    }
    disk_close(w->disk);
    for (size_t i = 0; w->fd && i < safetensors_shards(w->checkpoint->tensors); i++)
        if (w->fd[i] >= 0)
            close(w->fd[i]);
    free(w->fd);
    weights_cut_close(&w->cut);
    pthread_cond_destroy(&w->to_step);
    pthread_cond_destroy(&w->to_feeder);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* ---- the step -----------------------------------------------------------------------------
 */

void weights_begin(struct weights *w, bool with_head)
{
    pthread_mutex_lock(&w->lock);
    w->step = (struct position){w->step.pass + 1, 0};
    w->with_head = with_head;
    pthread_cond_signal(&w->to_feeder);
    pthread_mutex_unlock(&w->lock);
}

/* The flight of the piece the step wants, if it was made. */
static struct flight *step_flight(struct weights *w)
{
    struct flight *f = &w->flight[w->taken % WEIGHTS_FLIGHTS];
    bool is_it = w->taken < w->made && f->pass == w->step.pass && f->piece == w->step.piece;
    return is_it ? f : NULL;
}

static bool step_piece_here(struct weights *w)
{
    struct flight *f = step_flight(w);
    return f ? f->ready : w->cut.piece[w->step.piece].present;
}

static void step_wait(struct weights *w)
{
    if (step_piece_here(w))
        return;
    double since = thread_now();
    while (!step_piece_here(w))
        pthread_cond_wait(&w->to_step, &w->lock);
    w->counters.us_waited += (uint64_t)((thread_now() - since) * 1e6);
}

static void describe_error(struct weights *w, const struct weights_entry *e, int error)
{
    snprintf(w->error, sizeof w->error, "layer %u, %s: %s: %s", e->layer,
             weights_plan_role_name(e->role),
             safetensors_path(w->checkpoint->tensors, e->shard), strerror(-error));
}

int weights_take(struct weights *w, struct weights_block *ret_block)
{
    pthread_mutex_lock(&w->lock);
    assert(w->step.piece < (w->with_head ? w->cut.pieces : w->cut.head));
    step_wait(w);
    struct weights_piece *piece = &w->cut.piece[w->step.piece];
    const struct weights_entry *e = &w->plan->entry[piece->entry];
    struct flight *f = step_flight(w);
    int error = f ? f->read.error : 0;
    if (error) {
        describe_error(w, e, error);
    } else {
        const uint8_t *buffer = f ? f->read.buffer : piece->home;
        *ret_block = (struct weights_block){
            .entry = e,
            .data = buffer + piece->skip,
            .row = piece->row,
            .rows = piece->rows,
            .last = piece->row + piece->rows == e->rows,
            .private_slot = f,
        };
        w->taken += f != NULL;
        w->step.piece++;
    }
    pthread_mutex_unlock(&w->lock);
    return error;
}

void weights_give(struct weights *w, struct weights_block *b)
{
    struct flight *f = b->private_slot;
    if (!f)
        return;
    pthread_mutex_lock(&w->lock);
    assert(f == &w->flight[w->ended % WEIGHTS_FLIGHTS] && w->ended < w->taken);
    w->ended++;
    w->ring_used -= f->ring_bytes;
    pthread_cond_signal(&w->to_feeder);
    pthread_mutex_unlock(&w->lock);
}

void weights_rewind(struct weights *w)
{
    pthread_mutex_lock(&w->lock);
    w->rewinding = true;
    pthread_cond_signal(&w->to_feeder);
    while (w->rewinding)
        pthread_cond_wait(&w->to_step, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

const char *weights_error(const struct weights *w)
{
    return w->error;
}

void weights_counters(struct weights *w, struct weights_counters *ret_counters)
{
    pthread_mutex_lock(&w->lock);
    *ret_counters = w->counters;
    pthread_mutex_unlock(&w->lock);
}
