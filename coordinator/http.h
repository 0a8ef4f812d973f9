/*
 * The HTTP server: whole requests in, whole answers or streams of events out.
 *
 * libmicrohttpd is spoken to in http*.c only. It runs one epoll thread; a request that is not
 * answered at once is suspended, and any thread may answer it later. A second thread looks at
 * the waiting connections once a second: it notices clients that left (a suspended connection
 * is not polled by anybody else), fills the silence of event streams with comment lines, and
 * cuts off connections that send their request too slowly.
 *
 * A request belongs to the handler from the call of `handle` until http_release(). It is
 * answered exactly once: by http_reply(), or by http_stream(), any number of http_write() and
 * http_end(), in any order (a request stays valid within `handle` even when another thread has
 * released it). Everything here is safe to call after the client has left.
 */
#ifndef COORDINATOR_HTTP_H
#define COORDINATOR_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/problems.h"

struct http;
struct http_request;

struct http_options {
    const char *listen; /* "127.0.0.1:8000", "[::1]:0"; port 0: the kernel chooses */
    size_t body_most;   /* bytes of one request body; more is answered 413 while it arrives */
    size_t bodies_most; /* of all bodies held at once; beyond, 503 */
    unsigned connections;
    double
        header_seconds; /* a connection that has not sent a whole request head by then is cut */
    double body_seconds;    /* the same for head and body together */
    double comment_seconds; /* silence after which an event stream gets a comment line */
    /* On the HTTP thread, once a request is there with its whole body. Must not wait. */
    void (*handle)(void *context, struct http_request *r);
    /* An answer the server itself gives (413, 503): the body in the API's shape, malloc'ed. */
    char *(*explain)(int status, const char *sentence);
    void *context;
};

/* Listens and serves. -EINVAL for an address that is none, -EADDRINUSE and others, each with a
 * sentence that names the address. */
int http_open(struct http **ret_http, const struct http_options *o, struct problems *p);

/* Answers what is still waiting with a closed connection, and stops. Whoever holds requests
 * must have released them, or do so without touching the server. */
void http_close(struct http *h);

/* Host and port it listens on, "127.0.0.1:41234". */
const char *http_address(const struct http *h);

/* Is this address one only this machine can reach? -EINVAL when it is no HOST:PORT. */
int http_loopback(const char *listen, bool *ret_loopback);

/* Connections open now at the server that got this request. */
unsigned http_connections(const struct http_request *r);

/* Valid until http_release(). */
const char *http_method(const struct http_request *r);
const char *http_path(const struct http_request *r);
double http_arrived(const struct http_request *r); /* monotonic seconds */

/* The body (a zero byte follows it), and a header or NULL. Both only within `handle`. */
const char *http_body(const struct http_request *r, size_t *ret_length);
const char *http_header(const struct http_request *r, const char *name);

struct http_field {
    const char *name, *value;
};

/* The whole answer; everything is copied. `field` is one more header, or NULL. */
void http_reply(struct http_request *r, int status, const char *type, const char *body,
                size_t length, const struct http_field *field);

/* Begins an event stream (text/event-stream, 200): headers go out at once, then a comment or
 * what was written before this call. */
void http_stream(struct http_request *r);
/* Appends bytes to it. -EPIPE when the client has left or has not read for too long. */
int http_write(struct http_request *r, const char *bytes, size_t length);
void http_end(struct http_request *r);

/* Has the client left? Seen within about a second. */
bool http_gone(struct http_request *r);

void http_release(struct http_request *r);

#endif
