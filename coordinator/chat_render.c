/*
 * The order of a conversation's messages and the system's own ones (model.md 5.1 to 5.3). The
 * literal texts are the release's interface: a changed letter is another prompt.
 */
#include "coordinator/chat_render.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/chat_out.h"

static const char tools_head[] =
    "# Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n";
static const char more_tools_head[] =
    "## New Tools Available\nThe system dynamically extends the toolset via lazy-loading.\n"
    "You have access to all existing and extended tools.\n"
    "Here are the specs for the extended tools.\n\n```json\n";
static const char effort_head[] =
    "`thinking_effort` guides on how much to think in your thinking channel (not including the "
    "response channel), supported values include `low`, `medium`, `high`, and `max`.\n"
    "Now the system is invoked with `thinking_effort=";
static const char format_head[] =
    "`.\nYour response must be raw JSON data without markdown code blocks (```json) or any "
    "additional formatting.";

bool chat_marks_find(const struct tokenizer *t, struct chat_marks *ret_marks)
{
    int64_t open = tokenizer_control(t, "<|open|>"), close = tokenizer_control(t, "<|close|>");
    int64_t sep = tokenizer_control(t, "<|sep|>"), end = tokenizer_control(t, "<|end_of_msg|>");

    if (open < 0 || close < 0 || sep < 0 || end < 0)
        return false;
    *ret_marks =
        (struct chat_marks){(uint32_t)open, (uint32_t)close, (uint32_t)sep, (uint32_t)end};
    return true;
}

/* A message of the system's whose body is these pieces. */
static void put_system(struct chat_out *o, const char *type, const char *a, const char *b,
                       const char *c)
{
    size_t room = strlen(a) + strlen(b) + strlen(c) + 1;
    char *body = malloc(room);

    if (body == NULL) {
        api_error_set(o->error, 503, "", NULL, "out of memory");
        return;
    }
    snprintf(body, room, "%s%s%s", a, b, c);
    chat_out_system(o, type, body);
    free(body);
}

/* Compact, keys sorted at every depth, as the release declares tools and schemas. */
static void put_json(struct chat_out *o, const char *type, const char *head, const json_t *j)
{
    char *text = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

    put_system(o, type, head, text != NULL ? text : "", "\n```");
    free(text);
}

static const json_t *schema_of(const json_t *format)
{
    const json_t *outer = json_object_get(format, "json_schema");
    const json_t *schema = json_object_get(outer, "schema");

    if (schema == NULL)
        schema = json_object_get(outer, "json_schema");
    return schema != NULL ? schema : outer;
}

static void put_format(struct chat_out *o, const json_t *format)
{
    const char *type = json_string_value(json_object_get(format, "type"));
    char head[512];

    if (strcmp(type, "json_object") == 0) {
        put_system(o, "response-format", "The system is invoked with `response_format=", type,
                   format_head);
        return;
    }
    snprintf(head, sizeof head,
             "The system is invoked with `response_format=%s%s\nThe JSON data must match the "
             "following schema:\n```json\n",
             type, format_head);
    put_json(o, "response-format", head, schema_of(format));
}

static void put_choice(struct chat_out *o, const char *choice)
{
    put_system(o, "tool-choice", "The system is invoked with `tool_choice=", choice,
               strcmp(choice, "required") == 0
                   ? "`.\nYou MUST call tools in the next message."
                   : "`.\nYou MUST NOT call any tools in the next message.");
}

/* The run of tool results that begins at `first`; gives its end. */
static size_t run_end(const json_t *messages, size_t first)
{
    size_t end = first;

    for (; end < json_array_size(messages); end++) {
        const char *role =
            json_string_value(json_object_get(json_array_get(messages, end), "role"));

        if (role == NULL || strcmp(role, "tool") != 0)
            break;
    }
    return end;
}

static void put_one(struct chat_out *o, const json_t *message, const char *role, size_t index)
{
    if (strcmp(role, "assistant") == 0)
        chat_message_assistant(o, message, index);
    else if (strcmp(role, "user") == 0)
        chat_message_plain(o, message, "user", index);
    else if (json_array_size(json_object_get(message, "tools")) > 0)
        put_json(o, "tool-declare", more_tools_head, json_object_get(message, "tools"));
    else
        chat_message_plain(o, message, "system", index);
}

static bool known_role(const char *role)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant"};

    for (size_t i = 0; role != NULL && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(role, roles[i]) == 0)
            return true;
    return false;
}

static void put_conversation(struct chat_out *o, const json_t *messages)
{
    const json_t *assistant = NULL;
    size_t results = 0; /* since the assistant's message */

    for (size_t i = 0; i < json_array_size(messages) && o->error->status == 0; i++) {
        const json_t *message = json_array_get(messages, i);
        const char *role = json_string_value(json_object_get(message, "role"));
        size_t end = run_end(messages, i);

        if (end > i) {
            chat_message_tools(o, messages, (size_t[2]){i, end}, assistant, results);
            results += end - i;
            i = end - 1;
        } else if (!known_role(role)) {
            api_error_set(o->error, 400, "messages", "invalid_value",
                          "'messages[%zu].role' must be system, developer, user, assistant or "
                          "tool, found %.40s",
                          i, role != NULL ? role : "none");
        } else {
            put_one(o, message, role, i);
        }
        if (role != NULL && strcmp(role, "assistant") == 0) {
            assistant = message;
            results = 0;
        }
    }
}

bool chat_render(struct tokenizer *t, const json_t *messages, const struct chat_options *o,
                 uint32_t **ret_ids, size_t *ret_count, struct api_error *e)
{
    struct chat_out out = {.tokenizer = t, .error = e, .thinking = o->thinking};

    if (!chat_marks_find(t, &out.marks))
        return api_error_set(e, 400, "messages", "unsupported_value",
                             "the checkpoint's tokenizer has no chat markers");
    if (json_array_size(o->tools) > 0)
        put_json(&out, "tool-declare", tools_head, o->tools);
    if (o->thinking && o->effort != NULL)
        put_system(&out, "thinking-effort", effort_head, o->effort, "`.");
    put_conversation(&out, messages);
    if (o->tool_choice != NULL)
        put_choice(&out, o->tool_choice);
    if (o->response_format != NULL)
        put_format(&out, o->response_format);
    chat_out_open(&out, "message");
    chat_out_attribute(&out, " role", "assistant");
    chat_out_seal(&out);
    chat_out_begin(&out, o->thinking ? "think" : "response");
    if (e->status != 0) {
        free(out.id);
        return false;
    }
    *ret_ids = out.id;
    *ret_count = out.count;
    return true;
}
