/*
 * What the files of the links share, and the only header of ours that includes nng's. Private
 * to proto/link*.c.
 */
#ifndef PROTO_LINK_PRIVATE_H
#define PROTO_LINK_PRIVATE_H

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/thread.h"
#include "proto/link.h"

/* A call's machine: SENDING until nng took the message, RECEIVING until the answer is there. */
enum call_phase { CALL_IDLE, CALL_SENDING, CALL_RECEIVING };

struct call_state {
    struct link_call *call;
    nng_ctx ctx;
    nng_aio *aio;
    nng_msg *answer; /* what call->reply points into */
    enum call_phase phase;
    uint64_t number;
    size_t bytes; /* sent */
    int stop;     /* why it is to end early: 0, -ETIMEDOUT, -ECANCELED; under the links' lock */
    bool quiet;   /* ends without its queue: it is being closed */
    struct call_state *next, **link_to; /* in the list of calls under way */
};

struct link {
    struct links *links;
    char *address;
    nng_socket socket;
    bool open;
    struct link_call greet; /* Hello, owned by the watcher */
    Kapok__Request greeting;
    Kapok__Hello hello;
    bool greeting_now;
    double greet_at; /* monotonic seconds */
    /* Under the links' lock: */
    Kapok__Reply *answer; /* to the last Hello that was accepted */
    struct link_status status;
    double answered; /* monotonic seconds of the last answer; negative: never */
    struct link *next;
};

struct links {
    struct links_options options;
    struct link *first;
    struct thread watcher;
    bool started;
    struct queue greeted; /* of finished Hello calls */
    pthread_mutex_t lock;
    pthread_cond_t changed, ended; /* generation; a call */
    uint64_t generation, numbers;
    bool stopping;
    struct call_state *under_way;
};

/* Marks a link (under the lock) and moves the generation on when that is news. */
void link_private_mark(struct link *l, enum link_state state, const char *reason);

/* A message of a packed header and payload. -ENOMEM. */
int link_private_request(nng_msg **ret_msg, const Kapok__Request *r,
                         const struct iovec *payload, size_t parts);
int link_private_reply(nng_msg **ret_msg, const Kapok__Reply *r, const struct iovec *payload,
                       size_t parts);

/* Moves the payload of a received message to a multiple of 8 when nng put it elsewhere, so that
 * arrays of 64-bit numbers can be used where they lie. The header's bytes are given up. */
void link_private_align(struct msg *m);

int link_private_errno(int nng_error);

#endif
