/* See the header. */
#include "coordinator/api_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool api_error_set(struct api_error *e, int status, const char *param, const char *code,
                   const char *format, ...)
{
    va_list values;

    if (e->status != 0)
        return false;
    e->status = status;
    e->code = code;
    snprintf(e->param, sizeof e->param, "%s", param);
    va_start(values, format);
    vsnprintf(e->message, sizeof e->message, format, values);
    va_end(values);
    return false;
}

const char *api_error_type(int status)
{
    switch (status) {
    case 401:
        return "authentication_error";
    case 404:
        return "not_found_error";
    case 429:
        return "rate_limit_error";
    case 500:
    case 502:
    case 503:
    case 504:
        return "server_error";
    default:
        return "invalid_request_error";
    }
}

/* Cut messages may end inside a UTF-8 sequence; json_string() wants whole ones. */
static json_t *text_json(const char *text)
{
    size_t n = strlen(text);
    json_t *j;

    while ((j = json_stringn(text, n)) == NULL && n > 0)
        n--;
    return j;
}

json_t *api_error_json(const struct api_error *e)
{
    json_t *param = e->param[0] != 0 ? text_json(e->param) : json_null();
    json_t *code = e->code != NULL ? json_string(e->code) : json_null();

    return json_pack("{s:{s:o,s:s,s:o,s:o}}", "error", "message", text_json(e->message), "type",
                     api_error_type(e->status), "param", param, "code", code);
}

char *api_error_text(const struct api_error *e)
{
    json_t *j = api_error_json(e);
    char *text = j != NULL ? json_dumps(j, JSON_COMPACT) : NULL;

    json_decref(j);
    return text;
}

void api_error_reply(const struct api_error *e, struct http_request *r)
{
    static const struct http_field retry = {"Retry-After", "5"};
    static const struct http_field challenge = {"WWW-Authenticate", "Bearer"};
    const struct http_field *field = e->status == 401 ? &challenge : &retry;
    bool has_field = e->status == 401 || e->status == 429 || e->status == 503;
    char *text = api_error_text(e);
    const char *body = text != NULL ? text : "{\"error\":{\"message\":\"out of memory\"}}";

    http_reply(r, e->status, "application/json", body, strlen(body), has_field ? field : NULL);
    free(text);
}

char *api_error_explain(int status, const char *sentence)
{
    struct api_error e = {0};

    api_error_set(&e, status, "", NULL, "%s", sentence);
    return api_error_text(&e);
}
