/*
 * Links: a process's connections to the peers it asks (the asking side of nng's REQ/REP).
 *
 * One struct links per process holds all its peers and one thread, which greets idle peers
 * every LINK_GREET seconds, watches deadlines by the monotonic clock and marks who is silent. A
 * link reconnects for ever, in any start order. A call is one request under way: it ends
 * exactly once, into its queue, with a reply, an error of the peer, or an error of the link.
 * nng's own resending is off; whoever started a call decides whether to start it again.
 *
 * nng is spoken to in proto/link*.c only.
 */
#ifndef PROTO_LINK_H
#define PROTO_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/problems.h"
#include "base/queue.h"
#include "proto/checkpoint.h"
#include "proto/msg.h"
#include "proto/secret.h"

#define LINK_GREET   2.0 /* seconds of idleness after which Hello is sent */
#define LINK_SILENCE 6.0 /* seconds without an answer after which a peer is silent */

enum link_state {
    LINK_SILENT, /* no answer (yet, or no more) */
    LINK_UP,
    LINK_REFUSED, /* it answers, but with an error: another model, version or secret */
};

struct links_options {
    const char *role; /* of this process: "trunk", "coordinator", "client" */
    uint8_t secret[SECRET_BYTES];
    uint8_t model[CHECKPOINT_DIGEST];
    uint64_t payload_most; /* of replies */
};

struct links;
struct link;

int links_open(struct links **ret_links, const struct links_options *o);
int links_start(struct links *ls); /* the greeting thread */
/* Ends every call with -ECANCELED, stops, frees all links. Calls are closed before. */
void links_close(struct links *ls);

/* "tcp://127.0.0.1:7001". Anything but a loopback address over plain tcp is refused with a
 * sentence. Before links_start(). The link lives as long as `ls`. */
int links_add(struct links *ls, const char *address, struct link **ret_link,
              struct problems *p);

/* Is this an address a process may listen on or dial? */
int link_address_check(const char *address, struct problems *p);

/* Grows whenever any link's state or any peer's Hello changes. */
uint64_t links_generation(struct links *ls);

/* Waits until the generation is past `seen`, at most `seconds`; gives the present one. */
uint64_t links_wait(struct links *ls, uint64_t seen, double seconds);

struct link_status {
    enum link_state state;
    char reason[256]; /* why silent or refused */
    double age;       /* seconds since the last answer; infinite when there was none */
    uint64_t bytes_sent, bytes_received, requests;
    uint64_t instance; /* of the peer, 0 while unknown */
};

const char *link_address(const struct link *l);
void link_status(struct link *l, struct link_status *ret_status);
const char *link_state_name(enum link_state s);

/* The peer's last Hello, or NULL when it never answered; between get and put it does not
 * change, so be short. Always put. */
const Kapok__HelloReply *link_hello_get(struct link *l);
void link_hello_put(struct link *l);

/* One request under way at a time per call object; open as many as should be in flight. */
struct link_call {
    /* The caller's, set before link_call_start(): */
    Kapok__Request *request;     /* body only: secret, model, version, number are filled in */
    const struct iovec *payload; /* copied into the message at start */
    size_t payload_parts;
    double seconds;     /* deadline from the start; past it the call ends with -ETIMEDOUT */
    struct queue *done; /* must have room for every call that may end into it */
    void *owner;
    /* The link's, valid once the call came out of the queue: */
    int error;        /* 0, the peer's, or -ECONNRESET, -ETIMEDOUT, -ECANCELED, -EBADMSG,
                       * -EMSGSIZE (above the payload_most of the peer's Hello) */
    char reason[256]; /* a sentence when error */
    struct msg reply; /* when error is 0; valid until link_call_release() */
    struct link *link;
    double started, ended; /* monotonic seconds */
    void *private_state;
};

int link_call_open(struct link_call *c, struct link *l); /* -ENOMEM */
void link_call_close(struct link_call *c);               /* ends it when under way */

/* Always ends into c->done, also when it cannot be sent. */
void link_call_start(struct link_call *c);

/* Ends it early with -ECANCELED (still through the queue); a late answer is dropped. */
void link_call_cancel(struct link_call *c);

/* Gives the reply's memory back. Before the next start. */
void link_call_release(struct link_call *c);

#endif
