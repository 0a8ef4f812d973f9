/*
 * The options' file. It is read whole first and then given to libconfig as a string:
 * libconfig's scanner ends the process when a read fails (a folder in the place of a file,
 * say).
 */
#include "base/options_file.h"

#include <errno.h>
#include <libconfig.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/options_value.h"

#define FILE_MOST ((size_t)1 << 20)

struct reading {
    const char *path;
    const struct options_file_sink *sink;
    struct problems *problems;
};

static const struct option *find_option(const struct options_program *program, const char *key)
{
    for (size_t i = 0; i < program->count; i++) {
        const char *a = program->option[i].name, *b = key;
        while (*a && *b && (*a == '-' ? '_' : *a) == *b)
            a++, b++;
        if (!*a && !*b)
            return &program->option[i];
    }
    return NULL;
}

/* A scalar setting as text; -EINVAL when its type is not one for this kind of option. */
static int scalar_text(enum option_kind kind, const config_setting_t *s, char *buf, size_t size,
                       const char **ret_text)
{
    int type = config_setting_type(s);
    bool whole = type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64;
    bool number = kind == OPTION_COUNT || kind == OPTION_SIZE || kind == OPTION_REAL;
    bool string = kind == OPTION_TEXT || kind == OPTION_LIST || kind == OPTION_SIZE;

    *ret_text = buf;
    if (type == CONFIG_TYPE_STRING && string)
        *ret_text = config_setting_get_string(s);
    else if (whole && number)
        snprintf(buf, size, "%lld", config_setting_get_int64(s));
    else if (type == CONFIG_TYPE_FLOAT && kind == OPTION_REAL)
        snprintf(buf, size, "%.17g", config_setting_get_float(s));
    else if (type == CONFIG_TYPE_BOOL && kind == OPTION_FLAG)
        snprintf(buf, size, "%s", config_setting_get_bool(s) ? "true" : "false");
    else
        return -EINVAL;
    return 0;
}

static void give_scalar(const struct reading *r, const struct option *o,
                        const config_setting_t *s)
{
    char buf[64], where[512];
    const char *text;

    snprintf(where, sizeof where, "%s:%u: %s", r->path, config_setting_source_line(s), o->name);
    if (scalar_text(o->kind, s, buf, sizeof buf, &text) < 0)
        problems_add(r->problems, "%s: expected %s, found a setting of another type", where,
                     options_value_form(o->kind));
    else
        r->sink->give(r->sink->context, o, where, text);
}

static void give_setting(const struct reading *r, const struct option *o,
                         const config_setting_t *s)
{
    bool many = config_setting_is_array(s) || config_setting_is_list(s);

    if (o->kind != OPTION_LIST || !many) {
        give_scalar(r, o, s);
        return;
    }
    for (int i = 0; i < config_setting_length(s); i++)
        give_scalar(r, o, config_setting_get_elem(s, (unsigned)i));
}

static void give_all(const struct options_program *program, const struct reading *r,
                     const config_t *tree)
{
    const config_setting_t *root = config_root_setting(tree);

    for (int i = 0; i < config_setting_length(root); i++) {
        const config_setting_t *s = config_setting_get_elem(root, (unsigned)i);
        const struct option *o = find_option(program, config_setting_name(s));
        if (o)
            give_setting(r, o, s);
        else
            problems_add(r->problems, "%s:%u: unknown setting %s", r->path,
                         config_setting_source_line(s), config_setting_name(s));
    }
}

void options_file_read(const struct options_program *program, const char *path,
                       const struct options_file_sink *sink, struct problems *p)
{
    struct reading reading = {.path = path, .sink = sink, .problems = p};
    char *text;
    size_t length;
    config_t tree;
    int error = file_read(path, FILE_MOST, &text, &length);

    if (error) {
        problems_add(p, "--config: %s cannot be read: %s", path,
                     error == -EINVAL ? "not a regular file" : strerror(-error));
        return;
    }
    config_init(&tree);
    if (strlen(text) != length)
        problems_add(p, "%s: expected text, found a zero byte at offset %zu", path,
                     strlen(text));
    else if (config_read_string(&tree, text) != CONFIG_TRUE)
        problems_add(p, "%s:%d: %s", path, config_error_line(&tree), config_error_text(&tree));
    else
        give_all(program, &reading, &tree);
    config_destroy(&tree);
    free(text);
}
