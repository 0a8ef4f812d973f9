/*
 * See the header. Thinking is on unless "thinking" says disabled; its effort is "max" unless
 * given (the release's default); an explicit null leaves the message about it out.
 */
#include "coordinator/chat_request.h"

#include <stdio.h>
#include <string.h>

static bool read_messages(void *into, const char *name, const json_t *v, struct api_error *e)
{
    json_t *message;
    size_t i;

    if (!json_is_array(v) || json_array_size(v) == 0)
        return api_error_set(e, 400, name, "invalid_type",
                             "'messages' must be an array of at least one message, found %s",
                             json_is_array(v) ? "an empty one" : field_kind(v));
    json_array_foreach((json_t *)v, i, message)
    {
        if (!json_is_object(message))
            return api_error_set(e, 400, name, "invalid_type",
                                 "'messages[%zu]' must be an object, found %s", i,
                                 field_kind(message));
    }
    ((struct chat_request *)into)->messages = v;
    return true;
}

static const char *tool_name(const json_t *tool)
{
    return json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
}

static bool read_tools(void *into, const char *name, const json_t *v, struct api_error *e)
{
    json_t *tool;
    size_t i;

    if (!json_is_array(v))
        return api_error_set(e, 400, name, "invalid_type", "'tools' must be an array, found %s",
                             field_kind(v));
    json_array_foreach((json_t *)v, i, tool)
    {
        const char *type = json_string_value(json_object_get(tool, "type"));

        if (type == NULL || strcmp(type, "function") != 0 || tool_name(tool) == NULL)
            return api_error_set(e, 400, name, "invalid_value",
                                 "'tools[%zu]' must be of type function and have a "
                                 "function.name",
                                 i);
    }
    ((struct chat_request *)into)->tools = v;
    return true;
}

static bool read_choice(void *into, const char *name, const json_t *v, struct api_error *e)
{
    static const char *const words[] = {"auto", "none", "required"};
    struct chat_request *c = into;
    const char *text = json_string_value(v), *named = tool_name(v);

    c->has_choice = true;
    for (size_t i = 0; text != NULL && i < 3; i++) {
        if (strcmp(text, words[i]) == 0) {
            c->options.tool_choice = i > 0 ? words[i] : NULL;
            return true;
        }
    }
    if (named == NULL || strlen(named) >= sizeof c->named)
        return api_error_set(e, 400, name, "invalid_value",
                             "'tool_choice' must be auto, none, required, or name a function");
    c->named_tool = true;
    snprintf(c->named, sizeof c->named, "%s", named);
    return true;
}

static bool read_parallel(void *into, const char *name, const json_t *v, struct api_error *e)
{
    bool parallel;

    return field_bool(name, v, &parallel, e) &&
           field_only(name, parallel, "the number of calls is the model's choice; leave it out",
                      e);
}

static bool read_format(void *into, const char *name, const json_t *v, struct api_error *e)
{
    struct chat_request *c = into;
    const char *type = json_string_value(json_object_get(v, "type"));

    if (type != NULL && strcmp(type, "text") == 0)
        return true;
    if (type == NULL || (strcmp(type, "json_object") != 0 && strcmp(type, "json_schema") != 0))
        return api_error_set(e, 400, name, "invalid_value",
                             "'response_format.type' must be text, json_object or json_schema");
    if (strcmp(type, "json_schema") == 0 && !json_is_object(json_object_get(v, "json_schema")))
        return api_error_set(e, 400, name, "invalid_value",
                             "'response_format.json_schema' must be an object");
    c->options.response_format = v;
    return true;
}

static bool read_effort(void *into, const char *name, const json_t *v, struct api_error *e)
{
    static const char *const words[] = {"low", "high", "max"};
    const char *text = json_string_value(v);

    for (size_t i = 0; text != NULL && i < 3; i++) {
        if (strcmp(text, words[i]) == 0) {
            ((struct chat_request *)into)->options.effort = words[i];
            return true;
        }
    }
    return api_error_set(e, 400, name, "unsupported_value",
                         "'reasoning_effort' must be one of low, high, max, found %.40s",
                         text != NULL ? text : field_kind(v));
}

static bool read_thinking(void *into, const char *name, const json_t *v, struct api_error *e)
{
    const char *type = json_string_value(json_object_get(v, "type"));
    bool enabled = type != NULL && strcmp(type, "enabled") == 0;

    if (!enabled && (type == NULL || strcmp(type, "disabled") != 0))
        return api_error_set(e, 400, name, "invalid_value",
                             "'thinking.type' must be enabled or disabled");
    ((struct chat_request *)into)->options.thinking = enabled;
    return true;
}

static bool read_logprobs(void *into, const char *name, const json_t *v, struct api_error *e)
{
    return field_bool(name, v, &((struct params *)into)->logprobs, e);
}

static bool read_top(void *into, const char *name, const json_t *v, struct api_error *e)
{
    return field_count(name, v, 0, PARAMS_TOP, &((struct params *)into)->top_logprobs, e);
}

/* Nothing is stored beyond what background generations need. */
static bool read_store(void *into, const char *name, const json_t *v, struct api_error *e)
{
    bool store;

    return field_bool(name, v, &store, e) &&
           field_only(name, !store, "completions are not stored; leave it out or say false", e);
}

static const struct field fields[] = {
    {"messages", read_messages},
    {"tools", read_tools},
    {"tool_choice", read_choice},
    {"parallel_tool_calls", read_parallel},
    {"response_format", read_format},
    {"reasoning_effort", read_effort},
    {"thinking", read_thinking},
    {"logprobs", read_logprobs},
    {"top_logprobs", read_top},
    {"store", read_store},
    {NULL},
};

static bool has_tool(const json_t *tools, const char *name)
{
    json_t *tool;
    size_t i;

    json_array_foreach((json_t *)tools, i, tool)
    {
        if (strcmp(tool_name(tool), name) == 0)
            return true;
    }
    return false;
}

static bool check(struct chat_request *c, const json_t *body, struct api_error *e)
{
    const json_t *effort = json_object_get(body, "reasoning_effort");

    if (c->messages == NULL)
        return api_error_set(e, 400, "messages", "missing_required_parameter",
                             "'messages' is missing");
    if (c->has_choice && json_array_size(c->tools) == 0 &&
        (c->named_tool ||
         (c->options.tool_choice != NULL && strcmp(c->options.tool_choice, "required") == 0)))
        return api_error_set(e, 400, "tool_choice", "invalid_value",
                             "'tool_choice' needs 'tools'");
    if (c->named_tool && !has_tool(c->tools, c->named))
        return api_error_set(e, 400, "tool_choice", "invalid_value",
                             "'tool_choice' names %.100s, which is not in 'tools'", c->named);
    if (c->params.top_logprobs > 0 && !c->params.logprobs)
        return api_error_set(e, 400, "top_logprobs", "invalid_value",
                             "'top_logprobs' needs 'logprobs': true");
    if (effort != NULL && json_is_null(effort))
        c->options.effort = NULL;
    return true;
}

bool chat_request_read(struct chat_request *c, const json_t *body, struct api_error *e)
{
    const struct field *tables[] = {params_fields, fields};

    c->options.thinking = true;
    c->options.effort = "max";
    if (!field_object(body, c, tables, 2, e) || !check(c, body, e))
        return false;
    c->options.tools = c->tools;
    return true;
}
