/* See the header. */
#include "coordinator/chat_reply.h"

#include <stdlib.h>
#include <string.h>

void chat_reply_init(struct chat_reply *r, const struct tokenizer *t,
                     const struct chat_marks *marks, bool thinking)
{
    *r = (struct chat_reply){.tokenizer = t,
                             .marks = *marks,
                             .place = thinking ? CHAT_THINK : CHAT_RESPONSE,
                             .calls = json_array()};
}

static void forget(char **text)
{
    free(*text);
    *text = NULL;
}

static void forget_call(struct chat_reply *r)
{
    forget(&r->call);
    forget(&r->key);
    forget(&r->type);
    forget(&r->raw);
    json_decref(r->arguments);
    r->arguments = NULL;
}

void chat_reply_fini(struct chat_reply *r)
{
    forget_call(r);
    free(r->tag.bytes);
    free(r->value.bytes);
    free(r->thought.bytes);
    free(r->content.bytes);
    json_decref(r->calls);
}

static void append(struct chat_reply *r, struct chat_text *t, const char *bytes, size_t n)
{
    size_t room = t->room > 0 ? t->room : 64;
    char *bigger;

    while (room < t->length + n + 1)
        room *= 2;
    if (room != t->room) {
        bigger = realloc(t->bytes, room);
        if (bigger == NULL) {
            r->failed = true;
            return;
        }
        t->bytes = bigger;
        t->room = room;
    }
    memcpy(t->bytes + t->length, bytes, n);
    t->length += n;
    t->bytes[t->length] = 0;
}

static void empty(struct chat_text *t)
{
    t->length = 0;
    if (t->bytes != NULL)
        t->bytes[0] = 0;
}

static const char *string_of(const struct chat_text *t)
{
    return t->bytes != NULL ? t->bytes : "";
}

void chat_reply_taken(struct chat_reply *r)
{
    empty(&r->thought);
    empty(&r->content);
}

/* Text at the present place. */
static void take_text(struct chat_reply *r, const char *bytes, size_t n)
{
    if (n == 0)
        return;
    if (r->in_tag)
        append(r, &r->tag, bytes, n);
    else if (r->place == CHAT_THINK)
        append(r, &r->thought, bytes, n);
    else if (r->place == CHAT_RESPONSE || r->place == CHAT_OUTSIDE)
        append(r, &r->content, bytes, n);
    else if (r->place == CHAT_ARGUMENT || r->place == CHAT_JSON)
        append(r, &r->value, bytes, n);
}

/* A marker ends whatever UTF-8 sequence was incomplete. */
static void flush(struct chat_reply *r)
{
    char rest[8];

    take_text(r, rest, tokenizer_stream_end(&r->stream, rest));
}

/* Undoes the escapes of an attribute's value, in place: first &quot;, then &amp;. */
static void unescape(char *text)
{
    char *out = text;

    while (*text != 0) {
        if (strncmp(text, "&quot;", 6) == 0) {
            *out++ = '"';
            text += 6;
        } else if (strncmp(text, "&amp;", 5) == 0) {
            *out++ = '&';
            text += 5;
        } else {
            *out++ = *text++;
        }
    }
    *out = 0;
}

/* The value of an attribute of the tag, malloc'ed; NULL when it has none of that name. */
static char *attribute(const struct chat_reply *r, const char *name)
{
    const char *at = string_of(&r->tag);
    size_t n = strlen(name);

    while ((at = strchr(at, ' ')) != NULL) {
        const char *end;
        char *value;

        at++;
        if (strncmp(at, name, n) != 0 || strncmp(at + n, "=\"", 2) != 0)
            continue;
        at += n + 2;
        end = strchr(at, '"');
        value = end != NULL ? strndup(at, (size_t)(end - at)) : NULL;
        if (value != NULL)
            unescape(value);
        return value;
    }
    return NULL;
}

static bool tag_is(const struct chat_reply *r, const char *name)
{
    const char *tag = string_of(&r->tag);
    size_t n = strlen(name);

    return strncmp(tag, name, n) == 0 && (tag[n] == 0 || tag[n] == ' ');
}

static void open_tag(struct chat_reply *r)
{
    if (tag_is(r, "think")) {
        r->place = CHAT_THINK;
    } else if (tag_is(r, "response")) {
        r->place = CHAT_RESPONSE;
    } else if (tag_is(r, "tools")) {
        r->place = CHAT_TOOLS;
    } else if (tag_is(r, "call") && r->place == CHAT_TOOLS) {
        forget_call(r);
        r->call = attribute(r, "tool");
        r->arguments = json_object();
        r->place = CHAT_CALL;
    } else if (tag_is(r, "argument") && r->place == CHAT_CALL) {
        forget(&r->key);
        forget(&r->type);
        r->key = attribute(r, "key");
        r->type = attribute(r, "type");
        empty(&r->value);
        r->place = CHAT_ARGUMENT;
    } else if (tag_is(r, "json") && r->place == CHAT_CALL) {
        empty(&r->value);
        r->place = CHAT_JSON;
    }
}

static json_t *value_of(const struct chat_reply *r)
{
    json_t *v = NULL;

    if (r->type == NULL || strcmp(r->type, "string") != 0)
        v = json_loadb(string_of(&r->value), r->value.length, JSON_DECODE_ANY | JSON_ALLOW_NUL,
                       NULL);
    return v != NULL ? v : json_stringn(string_of(&r->value), r->value.length);
}

static void close_argument(struct chat_reply *r)
{
    if (r->key != NULL)
        json_object_set_new(r->arguments, r->key, value_of(r));
    r->place = CHAT_CALL;
}

/* One JSON text in place of arguments counts only before the first of them. */
static void close_json(struct chat_reply *r)
{
    if (json_object_size(r->arguments) == 0 && r->raw == NULL)
        r->raw = strdup(string_of(&r->value));
    r->place = CHAT_CALL;
}

static void close_call(struct chat_reply *r)
{
    char *text = r->raw != NULL && json_object_size(r->arguments) == 0
                     ? strdup(r->raw)
                     : json_dumps(r->arguments, JSON_COMPACT);

    if (r->call != NULL && r->call[0] != 0 && text != NULL)
        json_array_append_new(r->calls,
                              json_pack("{s:s,s:s}", "name", r->call, "arguments", text));
    free(text);
    forget_call(r);
    r->place = CHAT_TOOLS;
}

static void close_tag(struct chat_reply *r)
{
    if (tag_is(r, "argument") && r->place == CHAT_ARGUMENT)
        close_argument(r);
    else if (tag_is(r, "json") && r->place == CHAT_JSON)
        close_json(r);
    else if (tag_is(r, "call") && r->place == CHAT_CALL)
        close_call(r);
    else if (tag_is(r, "message"))
        r->place = CHAT_OVER;
    else if (tag_is(r, "think") || tag_is(r, "response") || tag_is(r, "tools"))
        r->place = CHAT_OUTSIDE;
}

void chat_reply_add(struct chat_reply *r, uint32_t token)
{
    const uint8_t *bytes;
    size_t n;
    char *text;

    if (tokenizer_is_control(r->tokenizer, token)) {
        flush(r);
        if (token == r->marks.sep && r->in_tag) {
            r->in_tag = false;
            (r->closing ? close_tag : open_tag)(r);
        } else if (token == r->marks.open || token == r->marks.close) {
            r->in_tag = true;
            r->closing = token == r->marks.close;
            empty(&r->tag);
        } else if (token == r->marks.end) {
            r->place = CHAT_OVER;
        }
        return;
    }
    bytes = tokenizer_bytes(r->tokenizer, token, &n);
    text = malloc(tokenizer_stream_room(n));
    if (text == NULL) {
        r->failed = true;
        return;
    }
    n = tokenizer_stream_push(&r->stream, bytes, n, text);
    take_text(r, text, n);
    free(text);
}

void chat_reply_end(struct chat_reply *r)
{
    flush(r);
    r->in_tag = false;
}
