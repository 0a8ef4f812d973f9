/* What clients ask about background generations. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/api.h"
#include "coordinator/api_error.h"

#define GENERATIONS "/v1/kapok/generations/"

/* The record that the path names, without `suffix`; answers 404 when there is none. */
static struct record *named(struct api *s, struct http_request *r, const char *suffix)
{
    const char *name = http_path(r) + strlen(GENERATIONS);
    size_t n = strlen(name) - strlen(suffix);
    struct api_error e = {0};
    char id[64] = "";
    struct record *found;

    if (n < sizeof id)
        memcpy(id, name, n);
    found = background_find(s->background, id);
    if (found == NULL) {
        api_error_set(&e, 404, "id", "generation_not_found",
                      "there is no generation '%.60s' here", id);
        api_error_reply(&e, r);
        http_release(r);
    }
    return found;
}

static void reply_record(struct record *record, struct http_request *r)
{
    json_t *j = record_json(record);
    char *text = json_dumps(j, JSON_COMPACT);

    json_decref(j);
    http_reply(r, 200, "application/json", text != NULL ? text : "{}",
               text != NULL ? strlen(text) : 2, NULL);
    http_release(r);
    free(text);
}

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

static void watch(struct api *s, struct http_request *r)
{
    struct record *record = named(s, r, "/events");
    const char *last = http_header(r, "Last-Event-ID");

    if (record == NULL)
        return;
    record_watch(record, r, last);
    record_release(record);
}

void background_handle_get(struct api *s, struct http_request *r)
{
    struct record *record;

    if (ends_in(http_path(r), "/events")) {
        watch(s, r);
        return;
    }
    record = named(s, r, "");
    if (record == NULL)
        return;
    reply_record(record, r);
    record_release(record);
}

void background_handle_delete(struct api *s, struct http_request *r)
{
    struct record *record = named(s, r, "");

    if (record == NULL)
        return;
    atomic_store(&record->cancel, true);
    reply_record(record, r);
    record_release(record);
}
