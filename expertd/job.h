/*
 * A Compute request under way: its rows sorted by expert, and its sum.
 *
 * A job is cut into wants: some bands of one expert of one drive, for the rows that chose it. A
 * want goes from the dispatcher to its drive, from there (its bytes being in a slot) to the
 * crew, and back to the drive, which lets the slot go. Whoever closes the last want finishes
 * the job: that is the answer. The job's memory is reused once every want has come back.
 *
 * A job that failed still lets all its wants run through; they are then cheap.
 */
#ifndef EXPERTD_JOB_H
#define EXPERTD_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/queue.h"
#include "expertd/ffn.h"
#include "expertd/tally.h"
#include "proto/compute.h"
#include "proto/link_server.h"

struct job;
struct drive;
struct cache_entry;

enum note_kind { NOTE_WANT, NOTE_DONE, NOTE_BAD, NOTE_HINT, NOTE_STOP };

struct note { /* what a drive's mailbox holds; first member of the thing it is about */
    enum note_kind kind;
};

struct want {
    struct note note;
    struct job *job;
    struct drive *drive;
    uint32_t expert;
    uint64_t bands;
    struct ffn_pair *pair;
    size_t pairs;
    struct cache_entry *entry; /* pinned while set */
    struct want *next;         /* of the list it is in */
    bool opens;                /* the first one of its job for this drive */
    uint64_t todo;             /* bands nobody has begun; the crew's, under its lock */
    _Atomic unsigned open;     /* bands not finished */
    _Atomic uint64_t bad;      /* bands whose bytes were not the packed ones, not computed */
    unsigned rereads;          /* because of that; the drive's */
};

struct job {
    struct link_request *request; /* NULL once answered */
    struct compute compute;
    float *z;             /* [rows][padded latent], lane order */
    int64_t *sum;         /* [rows][latent] */
    pthread_mutex_t lock; /* of sum and reason */
    struct ffn_pair *pair;
    struct want *want; /* [want_room] */
    size_t wants;
    _Atomic unsigned open;  /* wants not closed; the last one finishes the job */
    _Atomic unsigned users; /* wants that have not come back, and the answer */
    _Atomic int error;
    char reason[256];
    double begun;
    _Atomic uint64_t bytes_read, tiles_read, tiles_hit, ns_computing;
    _Atomic uint64_t us_reading; /* from `begun` to the last read that was waited for */
};

struct job_pool {
    const struct shape *shape;
    struct tally *tally;
    struct job *job;
    size_t jobs, want_room;
    uint32_t rows_most;
    struct queue idle;
    uint32_t *place; /* [experts + 1], the dispatcher's: where an expert's pairs begin */
};

/* Bytes the pool takes. */
uint64_t job_pool_bytes(const struct shape *s, size_t jobs, uint32_t rows, size_t want_room);

/* `want_room`: wants one job may have. */
int job_pool_open(struct job_pool *p, const struct shape *s, size_t jobs, uint32_t rows,
                  size_t want_room, struct memory *m);
void job_pool_close(struct job_pool *p);

/* Fills an idle job from its request: pairs by expert, z in lane order, sum zero. `p->place`
 * then says where each expert's pairs begin. The wants are the caller's to add. */
void job_begin(struct job_pool *p, struct job *j, const struct kernels *k);

/* One more want; before the first of them leaves. */
struct want *job_want(struct job *j, struct drive *d, uint32_t expert, uint64_t bands);

/* Notes an error; the first one stands. */
void job_fail(struct job *j, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Answers with the sum or with the error. */
void job_answer(struct job_pool *p, struct job *j);

/* A want came back, or the answer was given. */
void job_put(struct job_pool *p, struct job *j);

#endif
