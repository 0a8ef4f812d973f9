/*
 * A bounded queue of pointers between threads: the only thing threads share.
 *
 * Any number of putters and takers. Closing wakes everybody: what is in the queue can still be
 * taken, nothing more can be put. The room is allocated once.
 */
#ifndef BASE_QUEUE_H
#define BASE_QUEUE_H

#include <pthread.h>
#include <stddef.h>

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    void **item;
    size_t room, head, count;
    int closed;
};

int queue_open(struct queue *q, size_t room); /* -ENOMEM */
void queue_close(struct queue *q);            /* wakes; does not free */
void queue_free(struct queue *q);             /* after all threads are gone */

/* Waits for room. -EPIPE when closed. */
int queue_put(struct queue *q, void *item);
/* Never waits. -EAGAIN when full, -EPIPE when closed. */
int queue_offer(struct queue *q, void *item);

/* Waits for an item, at most `seconds` (negative: for ever; 0: not at all). -ETIMEDOUT, or
 * -EPIPE when closed and empty. */
int queue_take(struct queue *q, double seconds, void **ret_item);

size_t queue_count(struct queue *q);

#endif
