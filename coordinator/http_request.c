/*
 * Requests of the HTTP server: their life, and their answers from any thread.
 *
 * A request is held by libmicrohttpd (until it reports the request completed) and by the
 * handler (until http_release()); the last one frees it. All the crossing of threads happens
 * under the request's lock: a writer appends and resumes, the reader callback takes what is
 * there or suspends. Suspending and noting it are one step under the lock, so no wake-up is
 * lost.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/http_private.h"

struct http_request *http_request_new(struct http *h, struct http_connection *home,
                                      struct MHD_Connection *c, const char *method,
                                      const char *path)
{
    struct http_request *r = calloc(1, sizeof *r);

    if (r == NULL)
        return NULL;
    r->method = strdup(method);
    r->path = strdup(path);
    if (r->method == NULL || r->path == NULL) {
        free(r->method);
        free(r->path);
        free(r);
        return NULL;
    }
    r->http = h;
    r->home = home;
    r->connection = c;
    r->arrived = thread_now();
    atomic_init(&r->holders, 1);
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void http_release(struct http_request *r)
{
    if (atomic_fetch_sub(&r->holders, 1) != 1)
        return;
    if (r->response != NULL)
        MHD_destroy_response(r->response);
    pthread_mutex_destroy(&r->lock);
    free(r->out);
    free(r->body);
    free(r->method);
    free(r->path);
    free(r);
}

void http_request_finished(struct http_request *r)
{
    pthread_mutex_lock(&r->lock);
    atomic_store(&r->gone, true);
    r->connection = NULL;
    r->suspended = false;
    atomic_fetch_sub(&r->http->bodies, r->room);
    pthread_mutex_unlock(&r->lock);
    http_release(r);
}

void http_request_wake(struct http_request *r)
{
    if (!r->suspended || r->connection == NULL)
        return;
    r->suspended = false;
    MHD_resume_connection(r->connection);
}

enum MHD_Result http_request_proceed(struct http_request *r)
{
    struct MHD_Response *response;
    enum MHD_Result result = MHD_YES;

    pthread_mutex_lock(&r->lock);
    response = r->response;
    r->response = NULL;
    if (response == NULL && (r->lost || atomic_load(&r->http->stopping))) {
        result = MHD_NO;
    } else if (response == NULL) {
        r->suspended = true;
        MHD_suspend_connection(r->connection);
    }
    pthread_mutex_unlock(&r->lock);
    if (response != NULL) {
        r->state = HTTP_ANSWERED;
        result = MHD_queue_response(r->connection, (unsigned)r->status, response);
        MHD_destroy_response(response);
    }
    return result;
}

static void request_answer(struct http_request *r, int status, struct MHD_Response *response)
{
    pthread_mutex_lock(&r->lock);
    r->status = status;
    r->response = response;
    r->lost = response == NULL;
    http_request_wake(r);
    pthread_mutex_unlock(&r->lock);
}

void http_reply(struct http_request *r, int status, const char *type, const char *body,
                size_t length, const struct http_field *field)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(length, (void *)body, MHD_RESPMEM_MUST_COPY);

    if (response != NULL) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
        if (field != NULL)
            MHD_add_response_header(response, field->name, field->value);
    }
    request_answer(r, status, response);
}

/* Gives libmicrohttpd what has been written, or suspends until there is something. */
static ssize_t request_read(void *context, uint64_t position, char *buffer, size_t most)
{
    struct http_request *r = context;
    ssize_t result = 0;

    pthread_mutex_lock(&r->lock);
    if (r->head < r->tail) {
        size_t n = r->tail - r->head < most ? r->tail - r->head : most;

        memcpy(buffer, r->out + r->head, n);
        r->head += n;
        result = (ssize_t)n;
    } else if (r->ended) {
        result = MHD_CONTENT_READER_END_OF_STREAM;
    } else if (atomic_load(&r->gone)) {
        result = MHD_CONTENT_READER_END_WITH_ERROR;
    } else {
        r->suspended = true;
        MHD_suspend_connection(r->connection);
    }
    pthread_mutex_unlock(&r->lock);
    return result;
}

void http_stream(struct http_request *r)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, request_read, r, NULL);

    if (response != NULL) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
        MHD_add_response_header(response, "X-Accel-Buffering", "no");
    }
    pthread_mutex_lock(&r->lock);
    r->streaming = true;
    r->written = thread_now();
    if (r->tail == 0)
        http_request_append(r, ": kapok\n\n", 9);
    pthread_mutex_unlock(&r->lock);
    request_answer(r, MHD_HTTP_OK, response);
}

/* Moves what is unread to the front, or grows. */
static int request_room(struct http_request *r, size_t length)
{
    size_t unread = r->tail - r->head;
    size_t room = r->out_room > 0 ? r->out_room : 4096;
    char *bigger;

    if (unread + length > HTTP_UNREAD_MOST)
        return -EPIPE;
    if (unread > 0 && r->head > 0)
        memmove(r->out, r->out + r->head, unread);
    r->head = 0;
    r->tail = unread;
    while (room < unread + length)
        room *= 2;
    if (room == r->out_room)
        return 0;
    bigger = realloc(r->out, room);
    if (bigger == NULL)
        return -ENOMEM;
    r->out = bigger;
    r->out_room = room;
    return 0;
}

int http_request_append(struct http_request *r, const char *bytes, size_t length)
{
    if (atomic_load(&r->gone) || r->ended)
        return -EPIPE;
    if (r->tail + length > r->out_room && request_room(r, length) != 0) {
        atomic_store(&r->gone, true);
        http_request_wake(r);
        return -EPIPE;
    }
    memcpy(r->out + r->tail, bytes, length);
    r->tail += length;
    r->written = thread_now();
    http_request_wake(r);
    return 0;
}

int http_write(struct http_request *r, const char *bytes, size_t length)
{
    int error;

    pthread_mutex_lock(&r->lock);
    error = http_request_append(r, bytes, length);
    pthread_mutex_unlock(&r->lock);
    return error;
}

void http_end(struct http_request *r)
{
    pthread_mutex_lock(&r->lock);
    r->ended = true;
    http_request_wake(r);
    pthread_mutex_unlock(&r->lock);
}

bool http_gone(struct http_request *r)
{
    return atomic_load(&r->gone);
}

const char *http_method(const struct http_request *r)
{
    return r->method;
}

const char *http_path(const struct http_request *r)
{
    return r->path;
}

const char *http_body(const struct http_request *r, size_t *ret_length)
{
    *ret_length = r->length;
    return r->body != NULL ? r->body : "";
}

double http_arrived(const struct http_request *r)
{
    return r->arrived;
}

const char *http_header(const struct http_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}
