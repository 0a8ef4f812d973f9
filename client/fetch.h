/*
 * HTTP as the client speaks it (libcurl, spoken to here only): whole answers, and answers that
 * arrive in pieces.
 */
#ifndef CLIENT_FETCH_H
#define CLIENT_FETCH_H

#include <stdbool.h>
#include <stddef.h>

#define FETCH_MOST ((size_t)64 << 20) /* of a whole answer */

struct fetch_answer {
    long status; /* HTTP status, 0 when nothing answered */
    char *text;  /* whole answer, zero at its end; to be freed */
    size_t length;
    char reason[256]; /* when the result is an error */
};

struct fetch_request {
    const char *url;  /* "http://127.0.0.1:8000" */
    const char *path; /* "/ready" */
    const char *body; /* JSON: POST; NULL: GET */
    const char *key;  /* bearer key, or NULL */
    double seconds;   /* for everything; 0: no limit */
    /* Called with what arrives of an answer with status 200; NULL: it is collected. An answer
     * with another status is collected always. */
    void (*piece)(void *context, const char *bytes, size_t length);
    void *context;
    /* Looked at several times a second; true ends the request with -EINTR. May be NULL. */
    bool (*stop)(void *context);
};

/* 0 when an answer came, whatever its status. -ECONNREFUSED: nobody there; -EINTR: stopped;
 * -ETIMEDOUT, -EFBIG, -EIO. The answer is to be released in every case. */
int fetch(const struct fetch_request *r, struct fetch_answer *a);
void fetch_release(struct fetch_answer *a);

#endif
