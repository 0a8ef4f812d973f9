/*
 * The command line, read by argp. Private to the options, and knows nothing of them: argp.h
 * brings getopt's struct option along, so that no file can include both it and options.h.
 */
#ifndef BASE_OPTIONS_LINE_H
#define BASE_OPTIONS_LINE_H

#include <stddef.h>

#define OPTIONS_LINE_USAGE 2 /* exit code for every mistake in usage */

struct options_line_entry {
    const char *name;
    const char *argument; /* metavariable; NULL: takes none */
    const char *help;
};

struct options_line {
    const char *program, *version, *purpose;
    const char *arguments; /* metavariables of positional arguments, NULL: none allowed */
    const struct options_line_entry *entry;
    size_t count;
    /* Called in the order of the line. `text` is NULL for an entry without an argument. */
    void (*option)(void *context, size_t entry, const char *text);
    void (*positional)(void *context, const char *text);
    void *context;
};

/* Exits with 0 after --help, --usage and --version, with OPTIONS_LINE_USAGE after a sentence
 * about an option that is unknown, incomplete or not wanted here. -ENOMEM. */
int options_line_read(const struct options_line *line, int argc, char **argv);

#endif
