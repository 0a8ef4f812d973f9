/*
 * The watching thread of the HTTP server: once a second over all connections.
 *
 * A suspended connection is polled by nobody, so a client that left is found here (POLLRDHUP);
 * a connection that has been sending its request for too long (or that idles between requests)
 * is shut down, which libmicrohttpd then sees as an end; a silent event stream gets a comment.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include "coordinator/http_private.h"

#define WATCH_COMMENT ": waiting\n\n"

static bool watch_left(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};

    return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/* A request that the handler has: is its client there, does its stream need a comment? */
static void watch_request(struct http *h, struct http_connection *c, double now)
{
    struct http_request *r = c->request;

    pthread_mutex_lock(&r->lock);
    if (!atomic_load(&r->gone) && watch_left(c->fd)) {
        atomic_store(&r->gone, true);
        if (r->streaming)
            http_request_wake(r);
    }
    if (r->streaming && !r->ended && now - r->written >= h->options.comment_seconds)
        http_request_append(r, WATCH_COMMENT, sizeof WATCH_COMMENT - 1);
    pthread_mutex_unlock(&r->lock);
}

static void watch_connection(struct http *h, struct http_connection *c, double now)
{
    double limit = c->request == NULL ? h->options.header_seconds : h->options.body_seconds;

    if (c->request != NULL && c->request->handled) {
        watch_request(h, c, now);
    } else if (!c->cut && now - c->since > limit) {
        c->cut = true;
        shutdown(c->fd, SHUT_RDWR);
    }
}

static void watch_run(void *context)
{
    struct http *h = context;

    pthread_mutex_lock(&h->lock);
    while (!atomic_load(&h->stopping)) {
        struct timespec until;
        double now = thread_now();

        for (struct http_connection *c = h->first; c != NULL; c = c->next)
            watch_connection(h, c, now);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += 1;
        while (!atomic_load(&h->stopping) &&
               pthread_cond_timedwait(&h->wake, &h->lock, &until) != ETIMEDOUT)
            ;
    }
    pthread_mutex_unlock(&h->lock);
}

int http_watch_start(struct http *h)
{
    int error = thread_start(&h->watcher, "http-watch", watch_run, h);

    h->watching = error == 0;
    return error;
}

void http_watch_stop(struct http *h)
{
    if (!h->watching)
        return;
    pthread_mutex_lock(&h->lock);
    atomic_store(&h->stopping, true);
    pthread_cond_broadcast(&h->wake);
    pthread_mutex_unlock(&h->lock);
    thread_join(&h->watcher);
    h->watching = false;
}
