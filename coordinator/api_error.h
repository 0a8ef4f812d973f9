/*
 * What is wrong with a request, in OpenAI's error shape:
 *     {"error": {"message": ..., "type": ..., "param": ..., "code": ...}}
 *
 * The first problem found is the one told; functions that check take one and return false.
 */
#ifndef COORDINATOR_API_ERROR_H
#define COORDINATOR_API_ERROR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "coordinator/http.h"

struct api_error {
    int status; /* HTTP; 0: nothing is wrong */
    char message[768];
    char param[128];  /* the field, "" when it is about none */
    const char *code; /* static text or NULL */
};

/* Fills it in (the first one stays) and returns false. */
bool api_error_set(struct api_error *e, int status, const char *param, const char *code,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));

/* "invalid_request_error" and so on, by status. */
const char *api_error_type(int status);

/* {"error": ...}; a new reference. */
json_t *api_error_json(const struct api_error *e);

/* The JSON text, malloc'ed; NULL when there is no memory. */
char *api_error_text(const struct api_error *e);

/* Answers with it. 429 and 503 get Retry-After, 401 WWW-Authenticate. */
void api_error_reply(const struct api_error *e, struct http_request *r);

/* For the HTTP server's own answers. */
char *api_error_explain(int status, const char *sentence);

#endif
