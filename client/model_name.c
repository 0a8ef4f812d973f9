/* The served model's name: see the header. */
#include "client/model_name.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

int model_name_find(const struct target *t, char *ret_name, size_t size, struct fetch_answer *a)
{
    struct fetch_request r = {
        .url = t->url, .path = "/v1/models", .key = target_key(t), .seconds = 30};
    int error = fetch(&r, a);
    if (error)
        return error;
    json_t *j = json_loadb(a->text ? a->text : "", a->length, 0, NULL);
    const json_t *first = json_array_get(json_object_get(j, "data"), 0);
    const char *name = json_string_value(json_object_get(first, "id"));
    if (a->status == 200 && name)
        snprintf(ret_name, size, "%s", name);
    else
        error = -EPROTO;
    json_decref(j);
    return error;
}
