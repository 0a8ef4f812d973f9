/* argp, with no short options, and --version under our own hand instead of argp's global. */
#include "base/options_line.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY_FIRST   0x1000 /* beyond every letter, so that no option has a short form */
#define KEY_VERSION (KEY_FIRST - 1)

static error_t take(int key, char *arg, struct argp_state *state)
{
    const struct options_line *line = state->input;

    if (key >= KEY_FIRST && (size_t)(key - KEY_FIRST) < line->count) {
        line->option(line->context, (size_t)(key - KEY_FIRST), arg);
        return 0;
    }
    switch (key) {
    case KEY_VERSION:
        printf("%s %s\n", line->program, line->version);
        exit(0);
    case ARGP_KEY_ARG:
        if (!line->arguments)
            argp_error(state, "unexpected argument '%s'", arg);
        line->positional(line->context, arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int options_line_read(const struct options_line *line, int argc, char **argv)
{
    /* argp wants an empty entry at the end. */
    struct argp_option *table = calloc(line->count + 2, sizeof *table);
    struct argp argp = {
        .options = table, .parser = take, .args_doc = line->arguments, .doc = line->purpose};

    if (!table)
        return -ENOMEM;
    for (size_t i = 0; i < line->count; i++)
        table[i] = (struct argp_option){.name = line->entry[i].name,
                                        .key = KEY_FIRST + (int)i,
                                        .arg = line->entry[i].argument,
                                        .doc = line->entry[i].help};
    table[line->count] =
        (struct argp_option){.name = "version", .key = KEY_VERSION, .doc = "Print the version"};
    argp_err_exit_status = OPTIONS_LINE_USAGE;
    argp_parse(&argp, argc, argv, 0, NULL, (void *)line);
    free(table);
    return 0;
}
