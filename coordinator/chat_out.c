/* See the header. Attribute values escape & and " and nothing else (model.md 5). */
#include "coordinator/chat_out.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(struct chat_out *o, size_t more)
{
    size_t room = o->room > 0 ? o->room : 256;
    uint32_t *bigger;

    if (o->error->status != 0)
        return false;
    while (room < o->count + more)
        room *= 2;
    if (room == o->room)
        return true;
    bigger = realloc(o->id, room * sizeof *bigger);
    if (bigger == NULL)
        return api_error_set(o->error, 503, "", NULL, "out of memory");
    o->id = bigger;
    o->room = room;
    return true;
}

static void push(struct chat_out *o, uint32_t id)
{
    if (make_room(o, 1))
        o->id[o->count++] = id;
}

void chat_out_text(struct chat_out *o, const char *text, size_t length)
{
    uint32_t *ids;
    size_t count;

    if (length == 0 || o->error->status != 0)
        return;
    if (tokenizer_encode(o->tokenizer, text, length, false, &ids, &count) != 0) {
        api_error_set(o->error, 503, "", NULL, "out of memory");
        return;
    }
    if (make_room(o, count)) {
        memcpy(o->id + o->count, ids, count * sizeof *ids);
        o->count += count;
    }
    free(ids);
}

void chat_out_string(struct chat_out *o, const char *text)
{
    chat_out_text(o, text, strlen(text));
}

void chat_out_open(struct chat_out *o, const char *name)
{
    push(o, o->marks.open);
    chat_out_string(o, name);
}

/* The value with & and " replaced; malloc'ed. */
static char *escape(const char *value)
{
    char *out = malloc(6 * strlen(value) + 1), *at = out;

    if (out == NULL)
        return NULL;
    for (; *value != 0; value++) {
        if (*value == '&')
            at = stpcpy(at, "&amp;");
        else if (*value == '"')
            at = stpcpy(at, "&quot;");
        else
            *at++ = *value;
    }
    *at = 0;
    return out;
}

void chat_out_attribute(struct chat_out *o, const char *key, const char *value)
{
    char *escaped = escape(value);

    if (escaped == NULL) {
        api_error_set(o->error, 503, "", NULL, "out of memory");
        return;
    }
    chat_out_string(o, key);
    chat_out_string(o, "=\"");
    chat_out_string(o, escaped);
    chat_out_string(o, "\"");
    free(escaped);
}

void chat_out_seal(struct chat_out *o)
{
    push(o, o->marks.sep);
}

void chat_out_begin(struct chat_out *o, const char *name)
{
    chat_out_open(o, name);
    chat_out_seal(o);
}

void chat_out_close(struct chat_out *o, const char *name)
{
    push(o, o->marks.close);
    chat_out_string(o, name);
    push(o, o->marks.sep);
}

void chat_out_end_message(struct chat_out *o)
{
    chat_out_close(o, "message");
    push(o, o->marks.end);
}

void chat_out_system(struct chat_out *o, const char *type, const char *body)
{
    chat_out_open(o, "message");
    chat_out_attribute(o, " role", "system");
    chat_out_attribute(o, " type", type);
    chat_out_seal(o);
    chat_out_string(o, body);
    chat_out_end_message(o);
}
