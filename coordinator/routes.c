/*
 * The table of paths. Health and readiness are open to everybody (probes carry no key); all
 * else wants the bearer key when the server has one.
 */
#include "coordinator/routes.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/api_error.h"
#include "coordinator/chat.h"
#include "coordinator/completions.h"
#include "coordinator/metrics.h"
#include "coordinator/status.h"

static void reply_json(struct http_request *r, int status, json_t *j)
{
    char *text = j != NULL ? json_dumps(j, JSON_COMPACT) : NULL;

    http_reply(r, status, "application/json", text != NULL ? text : "{}",
               text != NULL ? strlen(text) : 2, NULL);
    free(text);
    json_decref(j);
    http_release(r);
}

static void handle_health(struct api *s, struct http_request *r)
{
    reply_json(r, 200, json_pack("{s:s}", "status", "ok"));
}

static void handle_ready(struct api *s, struct http_request *r)
{
    bool ready;
    json_t *j = status_ready_json(s, &ready);

    reply_json(r, ready ? 200 : 503, j);
}

static void handle_status(struct api *s, struct http_request *r)
{
    reply_json(r, 200, status_json(s, http_connections(r)));
}

static void handle_metrics(struct api *s, struct http_request *r)
{
    char *text = metrics_text(s, http_connections(r));
    const char *body = text != NULL ? text : "";

    http_reply(r, text != NULL ? 200 : 503, "text/plain; version=0.0.4", body, strlen(body),
               NULL);
    http_release(r);
    free(text);
}

static json_t *model_json(struct api *s)
{
    return json_pack("{s:s,s:s,s:I,s:s,s:I}", "id", s->model, "object", "model", "created",
                     (json_int_t)s->started, "owned_by", "kapok", "context_length",
                     (json_int_t)s->checkpoint->shape.context);
}

static void handle_models(struct api *s, struct http_request *r)
{
    reply_json(r, 200, json_pack("{s:s,s:[o]}", "object", "list", "data", model_json(s)));
}

static void refuse(struct http_request *r, const struct api_error *e)
{
    api_error_reply(e, r);
    http_release(r);
}

/* GET /v1/models/{id} */
static void handle_model(struct api *s, struct http_request *r)
{
    const char *name = http_path(r) + strlen("/v1/models/");
    struct api_error e = {0};

    if (strcmp(name, s->model) == 0) {
        reply_json(r, 200, model_json(s));
        return;
    }
    api_error_set(&e, 404, "model", "model_not_found",
                  "the model '%.100s' does not exist; this server has '%s'", name, s->model);
    refuse(r, &e);
}

struct route {
    const char *method, *path; /* a path ending in / also stands for what follows */
    void (*handle)(struct api *s, struct http_request *r);
    bool open; /* needs no key */
};

const struct answer_kind *routes_kind(const char *path)
{
    if (strcmp(path, "/v1/completions") == 0)
        return completions_kind();
    return strcmp(path, "/v1/chat/completions") == 0 ? chat_kind() : NULL;
}

static void handle_answer(struct api *s, struct http_request *r)
{
    answer_handle(s, routes_kind(http_path(r)), r);
}

static const struct route routes[] = {
    {"GET", "/health", handle_health, true},
    {"GET", "/ready", handle_ready, true},
    {"GET", "/metrics", handle_metrics, false},
    {"GET", "/v1/models", handle_models, false},
    {"GET", "/v1/models/", handle_model, false},
    {"GET", "/v1/kapok/status", handle_status, false},
    {"POST", "/v1/completions", handle_answer, false},
    {"POST", "/v1/chat/completions", handle_answer, false},
    {"GET", "/v1/kapok/generations/", background_handle_get, false},
    {"DELETE", "/v1/kapok/generations/", background_handle_delete, false},
};

static bool path_matches(const struct route *route, const char *path)
{
    size_t n = strlen(route->path);

    if (n > 1 && route->path[n - 1] == '/')
        return strncmp(route->path, path, n) == 0 && path[n] != 0;
    return strcmp(route->path, path) == 0;
}

static const struct route *find(struct http_request *r, struct api_error *e)
{
    const char *method = http_method(r), *path = http_path(r);
    const struct route *other = NULL;

    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (!path_matches(&routes[i], path))
            continue;
        if (strcmp(routes[i].method, method) == 0)
            return &routes[i];
        other = &routes[i];
    }
    if (other != NULL)
        api_error_set(e, 405, "", NULL, "%.16s is not for %.200s, which takes %s", method, path,
                      other->method);
    else
        api_error_set(e, 404, "", "unknown_url", "there is nothing at %.16s %.200s", method,
                      path);
    return NULL;
}

static bool may(const struct api *s, struct http_request *r, struct api_error *e)
{
    const char *header = http_header(r, "Authorization");
    size_t n = s->api_key != NULL ? strlen(s->api_key) : 0;

    if (s->api_key == NULL)
        return true;
    if (header == NULL || strncasecmp(header, "Bearer ", 7) != 0)
        return api_error_set(e, 401, "", "invalid_api_key",
                             "an API key is needed: Authorization: Bearer KEY");
    if (strlen(header + 7) != n || CRYPTO_memcmp(header + 7, s->api_key, n) != 0)
        return api_error_set(e, 401, "", "invalid_api_key", "the API key is not this server's");
    return true;
}

void routes_handle(void *context, struct http_request *r)
{
    struct api *s = context;
    struct api_error e = {0};
    const struct route *route = find(r, &e);

    if ((route == NULL || !route->open) && s->api_key != NULL) {
        struct api_error wrong_key = {0};

        if (!may(s, r, &wrong_key)) {
            refuse(r, &wrong_key);
            return;
        }
    }
    if (route == NULL)
        refuse(r, &e);
    else
        route->handle(s, r);
}
