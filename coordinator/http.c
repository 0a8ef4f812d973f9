/*
 * The HTTP server itself: listening, reading requests within their limits, handing them over.
 *
 * Owns the connections. The body limit is enforced while reading: a Content-Length that is too
 * large is answered before a byte of the body is read; a chunked body that grows too large is
 * thrown away as it arrives, answered at its end, and cut off when it goes on for ever.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "coordinator/http_private.h"

#define HTTP_CONNECTION_MEMORY ((size_t)64 << 10)
#define HTTP_STALL_SECONDS     120u /* a client that takes nothing for so long is dropped */

static enum MHD_Result refuse(struct http_request *r)
{
    char *body = r->http->options.explain(r->refusal, r->refusal_text);
    enum MHD_Result result;

    if (body == NULL)
        return MHD_NO;
    http_reply(r, r->refusal, "application/json", body, strlen(body), NULL);
    free(body);
    result = http_request_proceed(r);
    return result;
}

static void drop_body(struct http_request *r)
{
    atomic_fetch_sub(&r->http->bodies, r->room);
    free(r->body);
    r->body = NULL;
    r->length = r->room = 0;
}

static void note_refusal(struct http_request *r, int status, const char *text)
{
    r->state = HTTP_REFUSED;
    r->refusal = status;
    r->refusal_text = text;
    drop_body(r);
}

/* Makes room for `more` bytes, or notes why there is none. */
static bool body_room(struct http_request *r, size_t more)
{
    struct http *h = r->http;
    size_t room = r->room > 0 ? r->room : 4096;
    char *bigger;

    if (r->length + more > h->options.body_most) {
        note_refusal(r, 413, "The request body is too large");
        return false;
    }
    while (room < r->length + more + 1)
        room *= 2;
    if (room == r->room)
        return true;
    if (atomic_load(&h->bodies) + room - r->room > h->options.bodies_most ||
        (bigger = realloc(r->body, room)) == NULL) {
        note_refusal(r, 503, "Too many request bodies are being received at once");
        return false;
    }
    atomic_fetch_add(&h->bodies, room - r->room);
    r->body = bigger;
    r->room = room;
    return true;
}

static enum MHD_Result take_body(struct http_request *r, const char *bytes, size_t length)
{
    if (r->state == HTTP_READING && body_room(r, length)) {
        memcpy(r->body + r->length, bytes, length);
        r->length += length;
        r->body[r->length] = 0;
        return MHD_YES;
    }
    r->thrown += length;
    return r->thrown > r->http->options.body_most ? MHD_NO : MHD_YES;
}

/* The head of a request is there. */
static enum MHD_Result begin(struct http *h, struct MHD_Connection *c, const char *url,
                             const char *method, void **slot)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http_connection *home = info != NULL ? info->socket_context : NULL;
    struct http_request *r;
    const char *length;

    if (home == NULL || (r = http_request_new(h, home, c, method, url)) == NULL)
        return MHD_NO;
    *slot = r;
    pthread_mutex_lock(&h->lock);
    home->request = r;
    pthread_mutex_unlock(&h->lock);
    length = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (length != NULL && strtoull(length, NULL, 10) > h->options.body_most) {
        note_refusal(r, 413, "The request body is too large");
        return refuse(r);
    }
    return MHD_YES;
}

static enum MHD_Result hand_over(struct http *h, struct http_request *r)
{
    r->state = HTTP_HANDLED;
    atomic_fetch_add(&r->holders, 1);
    pthread_mutex_lock(&h->lock);
    r->handled = true;
    pthread_mutex_unlock(&h->lock);
    h->options.handle(h->options.context, r);
    drop_body(r);
    return http_request_proceed(r);
}

static enum MHD_Result on_access(void *context, struct MHD_Connection *c, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_length, void **slot)
{
    struct http *h = context;
    struct http_request *r = *slot;
    enum MHD_Result result;

    if (r == NULL)
        return begin(h, c, url, method, slot);
    if (*upload_length > 0) {
        result = take_body(r, upload, *upload_length);
        *upload_length = 0;
        return result;
    }
    switch (r->state) {
    case HTTP_READING:
        return hand_over(h, r);
    case HTTP_REFUSED:
        return refuse(r);
    default:
        return http_request_proceed(r);
    }
}

static void on_completed(void *context, struct MHD_Connection *c, void **slot,
                         enum MHD_RequestTerminationCode why)
{
    struct http *h = context;
    struct http_request *r = *slot;

    if (r == NULL)
        return;
    pthread_mutex_lock(&h->lock);
    r->home->request = NULL;
    r->home->since = thread_now();
    pthread_mutex_unlock(&h->lock);
    http_request_finished(r);
    *slot = NULL;
}

static void connection_begin(struct http *h, struct MHD_Connection *c, void **slot)
{
    struct http_connection *x = calloc(1, sizeof *x);

    *slot = x;
    if (x == NULL)
        return;
    x->http = h;
    x->fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    x->since = thread_now();
    atomic_fetch_add(&h->connections, 1);
    pthread_mutex_lock(&h->lock);
    x->next = h->first;
    if (h->first != NULL)
        h->first->prev = x;
    h->first = x;
    pthread_mutex_unlock(&h->lock);
}

static void on_connection(void *context, struct MHD_Connection *c, void **slot,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http *h = context;
    struct http_connection *x = *slot;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        connection_begin(h, c, slot);
        return;
    }
    if (x == NULL)
        return;
    pthread_mutex_lock(&h->lock);
    if (x->prev != NULL)
        x->prev->next = x->next;
    else
        h->first = x->next;
    if (x->next != NULL)
        x->next->prev = x->prev;
    pthread_mutex_unlock(&h->lock);
    atomic_fetch_sub(&h->connections, 1);
    free(x);
}

/* Splits HOST:PORT ("[::1]:80" for IPv6) and finds the socket address. */
static int resolve(const char *listen, struct addrinfo **ret_found)
{
    struct addrinfo want = {.ai_socktype = SOCK_STREAM,
                            .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
    const char *colon = strrchr(listen, ':');
    char host[256];
    size_t length = colon != NULL ? (size_t)(colon - listen) : 0;

    if (colon == NULL || length == 0 || length >= sizeof host || colon[1] == 0)
        return -EINVAL;
    memcpy(host, listen, length);
    host[length] = 0;
    if (host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = 0;
        memmove(host, host + 1, length - 1);
    }
    if (strcmp(host, "localhost") == 0)
        strcpy(host, "127.0.0.1");
    return getaddrinfo(host, colon + 1, &want, ret_found) == 0 ? 0 : -EINVAL;
}

int http_loopback(const char *listen, bool *ret_loopback)
{
    struct addrinfo *found;
    int error = resolve(listen, &found);

    if (error != 0)
        return error;
    if (found->ai_family == AF_INET6) {
        const struct sockaddr_in6 *a = (const void *)found->ai_addr;

        *ret_loopback = IN6_IS_ADDR_LOOPBACK(&a->sin6_addr);
    } else {
        const struct sockaddr_in *a = (const void *)found->ai_addr;

        *ret_loopback = ntohl(a->sin_addr.s_addr) >> 24 == 127;
    }
    freeaddrinfo(found);
    return 0;
}

/* As many connections as the options say and the process may have open. */
static unsigned connection_limit(unsigned wanted)
{
    struct rlimit files;
    unsigned room;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return wanted;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    room = files.rlim_cur > 512
               ? (unsigned)(files.rlim_cur > 1u << 20 ? 1u << 20 : files.rlim_cur) - 256
               : 256;
    return wanted < room ? wanted : room;
}

static struct MHD_Daemon *start(struct http *h, const struct addrinfo *where)
{
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC;

    if (where->ai_family == AF_INET6)
        flags |= MHD_USE_IPv6;
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_access, h, MHD_OPTION_SOCK_ADDR, where->ai_addr,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, h, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, h, MHD_OPTION_CONNECTION_MEMORY_LIMIT, HTTP_CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_LIMIT, connection_limit(h->options.connections),
        MHD_OPTION_CONNECTION_TIMEOUT, HTTP_STALL_SECONDS, MHD_OPTION_LISTENING_ADDRESS_REUSE,
        1u, MHD_OPTION_END);
}

static void name_address(struct http *h)
{
    const char *colon = strrchr(h->options.listen, ':');
    unsigned port = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;

    snprintf(h->address, sizeof h->address, "%.*s:%u", (int)(colon - h->options.listen),
             h->options.listen, port);
}

int http_open(struct http **ret_http, const struct http_options *o, struct problems *p)
{
    struct http *h = calloc(1, sizeof *h);
    struct addrinfo *where = NULL;
    pthread_condattr_t clock;
    int error;

    if (h == NULL)
        return -ENOMEM;
    h->options = *o;
    pthread_mutex_init(&h->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&h->wake, &clock);
    pthread_condattr_destroy(&clock);
    error = resolve(o->listen, &where);
    if (error != 0) {
        problems_add(p,
                     "%s is not an address to listen on: expected HOST:PORT with a numeric "
                     "host, such as 127.0.0.1:8000",
                     o->listen);
        goto fail;
    }
    errno = 0;
    h->daemon = start(h, where);
    freeaddrinfo(where);
    if (h->daemon == NULL) {
        error = errno != 0 ? -errno : -EIO;
        problems_add(p, "cannot listen on %s: %s", o->listen, strerror(-error));
        goto fail;
    }
    name_address(h);
    error = http_watch_start(h);
    if (error != 0)
        goto fail;
    *ret_http = h;
    return 0;

fail:
    http_close(h);
    return error;
}

/* libmicrohttpd wants nothing suspended when it stops. */
static void wake_all(struct http *h)
{
    pthread_mutex_lock(&h->lock);
    for (struct http_connection *c = h->first; c != NULL; c = c->next) {
        struct http_request *r = c->request;

        if (r == NULL)
            continue;
        pthread_mutex_lock(&r->lock);
        atomic_store(&r->gone, true);
        http_request_wake(r);
        pthread_mutex_unlock(&r->lock);
    }
    pthread_mutex_unlock(&h->lock);
}

void http_close(struct http *h)
{
    if (h == NULL)
        return;
    atomic_store(&h->stopping, true);
    http_watch_stop(h);
    if (h->daemon != NULL) {
        wake_all(h);
        MHD_stop_daemon(h->daemon);
    }
    pthread_cond_destroy(&h->wake);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

const char *http_address(const struct http *h)
{
    return h->address;
}

unsigned http_connections(const struct http_request *r)
{
    return atomic_load(&r->http->connections);
}
