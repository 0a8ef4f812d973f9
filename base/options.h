/*
 * Command-line options as one table in a program's main.c: parsed by argp (--help shows every
 * default and unit), each with a twin in a libconfig file named by --config, and logged at
 * start. The command line wins over the file. Nothing else configures a program: no
 * environment.
 *
 * A file that includes this cannot include argp.h or getopt.h, which have a struct option too.
 */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/problems.h"

enum option_kind {
    OPTION_TEXT,  /* const char *; NULL when not given and without a default */
    OPTION_COUNT, /* uint64_t: a plain decimal */
    OPTION_SIZE,  /* uint64_t bytes: 512, 64K, 300M, 24G, 1T (powers of 1024) */
    OPTION_REAL,  /* double, finite */
    OPTION_FLAG,  /* bool; takes no value on the command line */
    OPTION_LIST,  /* struct option_list: may be given several times (a list in the file) */
};

struct option_list {
    const char **item;
    size_t count;
};

struct option {
    const char *name; /* without dashes; the key in the file has - as _ */
    enum option_kind kind;
    void *value;          /* where the parsed value goes, by kind */
    const char *fallback; /* default as text, parsed like a given value; NULL: none */
    const char *argument; /* metavariable and unit for --help: "BYTES", "DIR", "SECONDS" */
    const char *help;
    uint64_t least, most; /* for COUNT and SIZE; most 0: no bound */
};

struct options_program {
    const char *name;      /* "kapok-trunk" */
    const char *purpose;   /* one sentence for --help */
    const char *arguments; /* metavariables of positional arguments, or NULL: none allowed */
    const struct option *option;
    size_t count;
};

/* Values live until options_release(). */
struct options {
    struct option_list positional;
    void *owned; /* private */
};

/*
 * Parses argv and the file named by --config. Prints and exits 0 for --help, --version and
 * --usage; any error (unknown option, bad value, out of bounds, unreadable file with line) is
 * a sentence on stderr and exit code 2, as for all usage errors.
 */
void options_parse(const struct options_program *p, int argc, char **argv, struct options *o);
void options_release(struct options *o);

/* "24G" and the like. -EINVAL with a sentence in `why`. */
int options_size(const char *text, uint64_t *ret_bytes, const char **why);

/* One line of all options and their values, secrets excepted (names ending in "key"). Into
 * buf, always terminated. */
void options_describe(const struct options_program *p, char *buf, size_t size);

#endif
