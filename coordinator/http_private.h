/* What http.c, http_request.c, http_watch.c share; nobody else includes this. */
#ifndef COORDINATOR_HTTP_PRIVATE_H
#define COORDINATOR_HTTP_PRIVATE_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "coordinator/http.h"

/* A stream whose client has left so much unread is given up. */
#define HTTP_UNREAD_MOST ((size_t)64 << 20)

/* One TCP connection; owned by the HTTP thread, in the list under http.lock. */
struct http_connection {
    struct http *http;
    struct http_connection *next, *prev;
    int fd;
    double since;                 /* start of the wait for the present request */
    struct http_request *request; /* while one is arriving or being answered */
    bool cut;
};

enum http_state {
    HTTP_READING,  /* the body arrives */
    HTTP_REFUSED,  /* the rest of the body is thrown away, then `refusal` is said */
    HTTP_HANDLED,  /* the handler has it */
    HTTP_ANSWERED, /* a response was queued */
};

struct http_request {
    struct http *http;
    struct http_connection *home;
    struct MHD_Connection *connection; /* NULL once libmicrohttpd is done with it */
    char *method, *path;
    char *body;
    size_t length, room, thrown;
    double arrived;
    enum http_state state; /* HTTP thread only */
    bool handled;          /* the handler has had it; under http.lock */
    int refusal;
    const char *refusal_text;
    atomic_int holders;
    atomic_bool gone;

    pthread_mutex_t lock; /* of everything below, and of `connection` */
    bool suspended;
    struct MHD_Response *response; /* given by http_reply() or http_stream(), not queued yet */
    int status;
    bool lost; /* there was no memory for the answer: the connection is closed */
    bool streaming, ended;
    char *out; /* bytes of the stream not fetched yet: out[head..tail) */
    size_t head, tail, out_room;
    double written;
};

struct http {
    struct http_options options;
    struct MHD_Daemon *daemon;
    char address[128];
    struct thread watcher;
    bool watching;
    atomic_uint connections;
    atomic_size_t bodies;
    pthread_mutex_t lock; /* of the list of connections */
    pthread_cond_t wake;
    atomic_bool stopping;
    struct http_connection *first;
};

struct http_request *http_request_new(struct http *h, struct http_connection *home,
                                      struct MHD_Connection *c, const char *method,
                                      const char *path);
/* libmicrohttpd has finished with the connection's present request. */
void http_request_finished(struct http_request *r);
/* Queues the answer when there is one, suspends otherwise. HTTP thread only. */
enum MHD_Result http_request_proceed(struct http_request *r);
/* Wakes a suspended connection; r->lock held. */
void http_request_wake(struct http_request *r);
/* Appends to the stream; r->lock held. */
int http_request_append(struct http_request *r, const char *bytes, size_t length);

int http_watch_start(struct http *h);
void http_watch_stop(struct http *h);

#endif
