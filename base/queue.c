/* The queue: a ring under one lock, with one condition for each direction. */
#include "base/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define WAIT_LONGEST 1e9 /* seconds; keeps the sum within time_t */

int queue_open(struct queue *q, size_t room)
{
    pthread_condattr_t monotonic;

    q->item = calloc(room > 0 ? room : 1, sizeof *q->item);
    if (!q->item)
        return -ENOMEM;
    q->room = room;
    q->head = q->count = 0;
    q->closed = 0;
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&q->filled, &monotonic);
    pthread_cond_init(&q->emptied, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return 0;
}

void queue_close(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = 1;
    pthread_cond_broadcast(&q->filled);
    pthread_cond_broadcast(&q->emptied);
    pthread_mutex_unlock(&q->lock);
}

void queue_free(struct queue *q)
{
    pthread_cond_destroy(&q->filled);
    pthread_cond_destroy(&q->emptied);
    pthread_mutex_destroy(&q->lock);
    free(q->item);
    q->item = NULL;
}

static int put_locked(struct queue *q, void *item)
{
    if (q->closed)
        return -EPIPE;
    if (q->count == q->room)
        return -EAGAIN;
    q->item[(q->head + q->count++) % q->room] = item;
    pthread_cond_signal(&q->filled);
    return 0;
}

int queue_put(struct queue *q, void *item)
{
    pthread_mutex_lock(&q->lock);
    while (!q->closed && q->count == q->room)
        pthread_cond_wait(&q->emptied, &q->lock);
    int error = put_locked(q, item);
    pthread_mutex_unlock(&q->lock);
    return error;
}

int queue_offer(struct queue *q, void *item)
{
    pthread_mutex_lock(&q->lock);
    int error = put_locked(q, item);
    pthread_mutex_unlock(&q->lock);
    return error;
}

static struct timespec deadline_after(double seconds)
{
    struct timespec t;

    if (seconds > WAIT_LONGEST)
        seconds = WAIT_LONGEST;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)seconds;
    t.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return t;
}

/* Until there is an item or the queue is closed or the time is over. */
static void wait_filled(struct queue *q, double seconds)
{
    if (seconds < 0) {
        while (q->count == 0 && !q->closed)
            pthread_cond_wait(&q->filled, &q->lock);
        return;
    }
    struct timespec end = deadline_after(seconds);
    while (q->count == 0 && !q->closed)
        if (pthread_cond_timedwait(&q->filled, &q->lock, &end) == ETIMEDOUT)
            return;
}

int queue_take(struct queue *q, double seconds, void **ret_item)
{
    int error = 0;

    pthread_mutex_lock(&q->lock);
    if (q->count == 0 && seconds != 0)
        wait_filled(q, seconds);
    if (q->count > 0) {
        *ret_item = q->item[q->head];
        q->head = (q->head + 1) % q->room;
        q->count--;
        pthread_cond_signal(&q->emptied);
    } else {
        error = q->closed ? -EPIPE : -ETIMEDOUT;
    }
    pthread_mutex_unlock(&q->lock);
    return error;
}

size_t queue_count(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    size_t count = q->count;
    pthread_mutex_unlock(&q->lock);
    return count;
}
