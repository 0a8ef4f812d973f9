/*
 * The answering side of the links: a listening address, and requests that come out of a queue.
 *
 * The server itself checks frame, secret, version and model digest of every request and answers
 * what fails; only good requests reach the queue. Any thread may answer, in any order. A client
 * that is gone is no error: its answer is dropped.
 */
#ifndef PROTO_LINK_SERVER_H
#define PROTO_LINK_SERVER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/problems.h"
#include "base/queue.h"
#include "proto/checkpoint.h"
#include "proto/msg.h"
#include "proto/secret.h"

struct link_server_options {
    const char *address; /* "tcp://127.0.0.1:0": the kernel chooses a port */
    uint8_t secret[SECRET_BYTES];
    uint8_t model[CHECKPOINT_DIGEST];
    uint64_t payload_most;  /* of requests; more is refused */
    unsigned requests;      /* under way at once; more wait in the sockets */
    struct queue *incoming; /* of struct link_request *, room >= requests */
};

struct link_server;

struct link_request {
    struct msg msg; /* .request is set; the payload lies in the message */
    double arrived; /* monotonic seconds */
    void *owner;    /* the program's, zero at first */
    void *private_state;
};

/* Listens. -EADDRINUSE and others with a sentence that names the address. */
int link_server_open(struct link_server **ret_server, const struct link_server_options *o,
                     struct problems *p);
/* Hangs up on everybody: nothing more comes out of the queue, and answers given from now on are
 * dropped. For programs whose threads may still be at work; close does it otherwise. */
void link_server_stop(struct link_server *s);

/* Stops and frees. No thread may answer any more; requests not answered yet are dropped. */
void link_server_close(struct link_server *s);

/* The address with the port that was given by the kernel. */
const char *link_server_address(const struct link_server *s);

/* Requests refused since start (bad frame, secret, version, digest). */
uint64_t link_server_refused(const struct link_server *s);

/* Answers and releases the request; its number is filled in. `payload` is copied. */
void link_server_reply(struct link_request *r, Kapok__Reply *reply, const struct iovec *payload,
                       size_t payload_parts);

/* The same with an error and a printf-like sentence. */
void link_server_refuse(struct link_request *r, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
