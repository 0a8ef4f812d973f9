/*
 * The messages of a conversation, one kind a function (model.md 5.4). Bodies are raw; an
 * assistant's message in thinking mode always has its think channel, empty or not, so that what
 * was thought in earlier turns is seen again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/chat_out.h"
#include "coordinator/field.h"

static bool refuse(struct chat_out *o, size_t index, const char *what)
{
    char param[64];

    snprintf(param, sizeof param, "messages[%zu]", index);
    return api_error_set(o->error, 400, param, "invalid_value", "'%s': %s", param, what);
}

static void put_part(struct chat_out *o, const json_t *part, size_t index)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    const json_t *text = json_object_get(part, "text");

    if (type == NULL)
        refuse(o, index, "each content part needs a 'type'");
    else if (strcmp(type, "text") != 0)
        refuse(o, index, "only text parts can be read: images, audio and files cannot");
    else if (!json_is_string(text))
        refuse(o, index, "a text part needs a 'text' string");
    else
        chat_out_text(o, json_string_value(text), json_string_length(text));
}

/* A string, an array of text parts, or nothing. */
static void put_content(struct chat_out *o, const json_t *content, size_t index)
{
    json_t *part;
    size_t i;

    if (json_is_string(content)) {
        chat_out_text(o, json_string_value(content), json_string_length(content));
    } else if (json_is_array(content)) {
        json_array_foreach((json_t *)content, i, part)
        {
            put_part(o, part, index);
        }
    } else if (content != NULL && !json_is_null(content)) {
        refuse(o, index, "'content' must be a string or an array of parts");
    }
}

static void put_name(struct chat_out *o, const json_t *message, size_t index)
{
    const json_t *name = json_object_get(message, "name");

    if (name == NULL || json_is_null(name))
        return;
    if (!json_is_string(name))
        refuse(o, index, "'name' must be a string");
    else
        chat_out_attribute(o, " name", json_string_value(name));
}

void chat_message_plain(struct chat_out *o, const json_t *message, const char *role,
                        size_t index)
{
    const json_t *content = json_object_get(message, "content");

    if (content == NULL || json_is_null(content))
        refuse(o, index, "'content' is missing");
    chat_out_open(o, "message");
    chat_out_attribute(o, " role", role);
    put_name(o, message, index);
    chat_out_seal(o);
    put_content(o, content, index);
    chat_out_end_message(o);
}

static const char *type_name(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "object";
    case JSON_ARRAY:
        return "array";
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "number";
    case JSON_NULL:
        return "null";
    default:
        return "boolean";
    }
}

static void put_argument(struct chat_out *o, const char *key, const json_t *v)
{
    chat_out_open(o, "argument");
    chat_out_attribute(o, " key", key);
    chat_out_attribute(o, " type", type_name(v));
    chat_out_seal(o);
    if (json_is_string(v)) {
        chat_out_text(o, json_string_value(v), json_string_length(v));
    } else {
        char *text = json_dumps(v, JSON_ENCODE_ANY);

        chat_out_string(o, text != NULL ? text : "");
        free(text);
    }
    chat_out_close(o, "argument");
}

/* The arguments' JSON text; what is no JSON is shown as it is. */
static void put_arguments(struct chat_out *o, const json_t *arguments, size_t index)
{
    const char *text = json_is_string(arguments) ? json_string_value(arguments) : "";
    json_t *j, *v;
    const char *key;

    if (text[0] == 0)
        return;
    j = json_loads(text, JSON_DECODE_ANY, NULL);
    if (j == NULL) {
        chat_out_open(o, "json");
        chat_out_attribute(o, " type", "object");
        chat_out_seal(o);
        chat_out_string(o, text);
        chat_out_close(o, "json");
    } else if (!json_is_object(j)) {
        refuse(o, index, "a tool call's arguments must be a JSON object");
    }
    json_object_foreach(j, key, v)
    {
        put_argument(o, key, v);
    }
    json_decref(j);
}

static const char *call_name(const json_t *call)
{
    return json_string_value(json_object_get(json_object_get(call, "function"), "name"));
}

static void put_calls(struct chat_out *o, const json_t *calls, size_t index)
{
    json_t *call;
    size_t i;

    chat_out_begin(o, "tools");
    json_array_foreach((json_t *)calls, i, call)
    {
        const json_t *function = json_object_get(call, "function");
        const char *name = call_name(call);
        char number[24];

        if (name == NULL) {
            refuse(o, index, "each tool call needs a 'function' with a 'name'");
            return;
        }
        snprintf(number, sizeof number, "%zu", i + 1);
        chat_out_open(o, "call");
        chat_out_attribute(o, " tool", name);
        chat_out_attribute(o, " index", number);
        chat_out_seal(o);
        put_arguments(o, json_object_get(function, "arguments"), index);
        chat_out_close(o, "call");
    }
    chat_out_close(o, "tools");
}

static void put_think(struct chat_out *o, const json_t *message, size_t index)
{
    const json_t *reasoning = json_object_get(message, "reasoning_content");

    if (reasoning == NULL)
        reasoning = json_object_get(message, "reasoning");
    chat_out_begin(o, "think");
    if (reasoning != NULL && !json_is_null(reasoning) && !json_is_string(reasoning))
        refuse(o, index, "'reasoning_content' must be a string");
    put_content(o, reasoning, index);
    chat_out_close(o, "think");
}

void chat_message_assistant(struct chat_out *o, const json_t *message, size_t index)
{
    const json_t *calls = json_object_get(message, "tool_calls");

    chat_out_open(o, "message");
    chat_out_attribute(o, " role", "assistant");
    put_name(o, message, index);
    chat_out_seal(o);
    if (o->thinking)
        put_think(o, message, index);
    chat_out_begin(o, "response");
    put_content(o, json_object_get(message, "content"), index);
    chat_out_close(o, "response");
    if (json_array_size(calls) > 0)
        put_calls(o, calls, index);
    chat_out_end_message(o);
}

/* ---- tool results ----------------------------------------------------------------------- */

/* Which call of the assistant's message this result answers; -1: none. */
static long answers(const json_t *result, const json_t *calls)
{
    const char *id = json_string_value(json_object_get(result, "tool_call_id"));
    json_t *call;
    size_t i;

    json_array_foreach((json_t *)calls, i, call)
    {
        const char *other = json_string_value(json_object_get(call, "id"));

        if (id != NULL && other != NULL && strcmp(id, other) == 0)
            return (long)i;
    }
    return -1;
}

static bool all_answer(const json_t *messages, const size_t range[2], const json_t *calls)
{
    for (size_t i = range[0]; i < range[1]; i++)
        if (answers(json_array_get(messages, i), calls) < 0)
            return false;
    return true;
}

static const char *result_name(const json_t *result, const json_t *call)
{
    const char *name = call != NULL ? call_name(call) : NULL;

    if (name == NULL)
        name = json_string_value(json_object_get(result, "tool"));
    if (name == NULL)
        name = json_string_value(json_object_get(result, "name"));
    return name != NULL ? name : "";
}

static void put_result(struct chat_out *o, const json_t *result, const char *name,
                       const size_t place_index[2])
{
    char number[24];

    snprintf(number, sizeof number, "%zu", place_index[0]);
    chat_out_open(o, "message");
    chat_out_attribute(o, " role", "tool");
    chat_out_attribute(o, " tool", name);
    chat_out_attribute(o, " index", number);
    chat_out_seal(o);
    put_content(o, json_object_get(result, "content"), place_index[1]);
    chat_out_end_message(o);
}

void chat_message_tools(struct chat_out *o, const json_t *messages, const size_t range[2],
                        const json_t *before, size_t counted)
{
    const json_t *calls = json_object_get(before, "tool_calls");
    bool ordered = all_answer(messages, range, calls);

    if (!ordered) {
        for (size_t i = range[0]; i < range[1]; i++, counted++) {
            const json_t *result = json_array_get(messages, i);
            const char *own = result_name(result, NULL);

            put_result(o, result,
                       own[0] != 0 ? own : result_name(result, json_array_get(calls, counted)),
                       (size_t[2]){counted + 1, i});
        }
        return;
    }
    for (size_t c = 0; c < json_array_size(calls); c++) {
        for (size_t i = range[0]; i < range[1]; i++) {
            const json_t *result = json_array_get(messages, i);

            if (answers(result, calls) == (long)c)
                put_result(o, result, result_name(result, json_array_get(calls, c)),
                           (size_t[2]){++counted, i});
        }
    }
}
