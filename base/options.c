/*
 * Options: argp reads the command line, libconfig the file (options_file.c), and both only
 * collect; the values are set afterwards, in the order default, file, command line, so that
 * what was overridden is still checked. Everything wrong is said at once.
 *
 * What the values point to (texts of the file, lists) hangs on `owned` until released.
 */
#include "base/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options_file.h"
#include "base/options_line.h"
#include "base/options_value.h"

/* What one source said about one option; a later source replaces all of it. */
struct said {
    const char **text;
    size_t count;
    bool by_command_line;
};

struct parsing {
    const struct options_program *program;
    struct options *options;
    struct said *said; /* one for each option */
    const char *config;
    struct problems problems;
};

struct owned {
    void **block;
    size_t count;
};

static void *no_memory_ends(void *block)
{
    if (!block) {
        fputs("options: out of memory\n", stderr);
        exit(OPTIONS_LINE_USAGE);
    }
    return block;
}

/* Room that lives as long as the options; grown like realloc when `block` is not NULL. */
static void *own(struct options *o, void *block, size_t bytes)
{
    struct owned *all = o->owned;
    size_t i = 0;

    while (block && all->block[i] != block)
        i++;
    if (!block) {
        i = all->count++;
        all->block = no_memory_ends(realloc(all->block, all->count * sizeof *all->block));
    }
    all->block[i] = no_memory_ends(realloc(block, bytes));
    return all->block[i];
}

static const char *own_text(struct options *o, const char *text)
{
    size_t size = strlen(text) + 1;

    return memcpy(own(o, NULL, size), text, size);
}

static void append(struct options *o, const char ***items, size_t *count, const char *text)
{
    *items = own(o, *items, (*count + 1) * sizeof **items);
    (*items)[(*count)++] = text;
}

static void say(struct parsing *p, const struct option *o, const char *text)
{
    struct said *said = &p->said[o - p->program->option];

    if (o->kind != OPTION_LIST)
        said->count = 0;
    append(p->options, &said->text, &said->count, text);
}

static void check(struct parsing *p, const struct option *o, const char *where,
                  const char *text)
{
    char bounds[80];
    int error = o->kind == OPTION_LIST ? 0 : options_value_set(o, text);

    options_value_bounds(o, bounds, sizeof bounds);
    if (error == -ERANGE)
        problems_add(&p->problems, "%s: expected %s, found %s", where,
                     *bounds ? bounds : "a number below 2^64", text);
    else if (error)
        problems_add(&p->problems, "%s: expected %s, found '%s'", where,
                     options_value_form(o->kind), text);
}

/* --- the command line --- */

static void take_option(void *context, size_t entry, const char *text)
{
    struct parsing *p = context;

    if (entry == p->program->count) {
        p->config = text;
        return;
    }
    p->said[entry].by_command_line = true;
    say(p, &p->program->option[entry], text ? text : "true");
}

static void take_positional(void *context, const char *text)
{
    struct parsing *p = context;
    struct option_list *list = &p->options->positional;

    append(p->options, &list->item, &list->count, text);
}

/* The sentence of --help, with what is allowed and what is the default. */
static const char *help_text(struct parsing *p, const struct option *o)
{
    char bounds[80], text[1024];

    options_value_bounds(o, bounds, sizeof bounds);
    snprintf(text, sizeof text, "%s%s%s%s%s%s%s", o->help, *bounds || o->fallback ? " (" : "",
             bounds, *bounds && o->fallback ? "; " : "", o->fallback ? "default " : "",
             o->fallback ? o->fallback : "", *bounds || o->fallback ? ")" : "");
    return own_text(p->options, text);
}

static void read_command_line(struct parsing *p, int argc, char **argv)
{
    const struct options_program *program = p->program;
    struct options_line_entry *entry =
        no_memory_ends(calloc(program->count + 1, sizeof *entry));
    struct options_line line = {.program = program->name,
                                .version = KAPOK_VERSION,
                                .purpose = program->purpose,
                                .arguments = program->arguments,
                                .entry = entry,
                                .count = program->count + 1,
                                .option = take_option,
                                .positional = take_positional,
                                .context = p};

    for (size_t i = 0; i < program->count; i++) {
        const struct option *o = &program->option[i];
        entry[i].name = o->name;
        entry[i].argument = o->kind == OPTION_FLAG ? NULL : o->argument;
        entry[i].help = help_text(p, o);
    }
    entry[program->count] =
        (struct options_line_entry){.name = "config",
                                    .argument = "FILE",
                                    .help = "Settings by option name, - written as _"};
    if (options_line_read(&line, argc, argv) < 0)
        no_memory_ends(NULL);
    free(entry);
}

/* --- the file --- */

static void take_setting(void *context, const struct option *o, const char *where,
                         const char *text)
{
    struct parsing *p = context;

    text = own_text(p->options, text);
    check(p, o, where, text);
    if (!p->said[o - p->program->option].by_command_line)
        say(p, o, text);
}

/* --- the values --- */

static void set_value(struct parsing *p, const struct option *o, const struct said *said)
{
    char where[128];

    if (o->kind == OPTION_LIST) {
        *(struct option_list *)o->value =
            (struct option_list){.item = said->text, .count = said->count};
        return;
    }
    if (said->count == 0)
        return;
    snprintf(where, sizeof where, "--%s", o->name);
    if (said->by_command_line)
        check(p, o, where, said->text[0]);
    else
        options_value_set(o, said->text[0]); /* checked where it came from */
}

static void clear_value(const struct option *o)
{
    static const size_t size[] = {
        [OPTION_TEXT] = sizeof(char *),   [OPTION_COUNT] = sizeof(uint64_t),
        [OPTION_SIZE] = sizeof(uint64_t), [OPTION_REAL] = sizeof(double),
        [OPTION_FLAG] = sizeof(bool),     [OPTION_LIST] = sizeof(struct option_list)};

    memset(o->value, 0, size[o->kind]);
}

static void set_fallback(struct parsing *p, const struct option *o)
{
    char where[128];

    clear_value(o);
    if (!o->fallback)
        return;
    snprintf(where, sizeof where, "default of --%s", o->name);
    check(p, o, where, o->fallback);
    struct said *said = &p->said[o - p->program->option];
    if (o->kind == OPTION_LIST && said->count == 0)
        say(p, o, o->fallback);
}

void options_parse(const struct options_program *program, int argc, char **argv,
                   struct options *o)
{
    struct parsing p = {.program = program, .options = o};
    struct options_file_sink sink = {.give = take_setting, .context = &p};

    problems_init(&p.problems);
    *o = (struct options){.owned = no_memory_ends(calloc(1, sizeof(struct owned)))};
    p.said = no_memory_ends(calloc(program->count + 1, sizeof *p.said));
    read_command_line(&p, argc, argv);
    if (p.config)
        options_file_read(program, p.config, &sink, &p.problems);
    for (size_t i = 0; i < program->count; i++) {
        set_fallback(&p, &program->option[i]);
        set_value(&p, &program->option[i], &p.said[i]);
    }
    free(p.said);
    if (p.problems.count > 0) {
        fprintf(stderr, "%s: %s\n", program->name, p.problems.text);
        exit(OPTIONS_LINE_USAGE);
    }
}

void options_release(struct options *o)
{
    struct owned *all = o->owned;

    for (size_t i = 0; all && i < all->count; i++)
        free(all->block[i]);
    if (all)
        free(all->block);
    free(all);
    *o = (struct options){0};
}

void options_describe(const struct options_program *program, char *buf, size_t size)
{
    char value[1024];
    size_t used = 0;

    snprintf(buf, size, "%s", "");
    for (size_t i = 0; i < program->count && used < size; i++) {
        const struct option *o = &program->option[i];
        size_t length = strlen(o->name);
        bool secret = length >= 3 && !strcmp(o->name + length - 3, "key");
        options_value_text(o, value, sizeof value);
        used += (size_t)snprintf(buf + used, size - used, "%s%s=%s", i > 0 ? " " : "", o->name,
                                 secret && *value ? "(secret)" : value);
    }
}
