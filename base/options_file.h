/*
 * The libconfig twin of the options. Private to the options.
 */
#ifndef BASE_OPTIONS_FILE_H
#define BASE_OPTIONS_FILE_H

#include "base/options.h"
#include "base/problems.h"

/*
 * Reads the file and gives every setting to `give` as text: a list item by item, numbers in
 * decimal, booleans as "true" or "false". `context` is passed through, `where` is "FILE:LINE:
 * NAME"; both texts are only lent. What is unknown, of the wrong type or unreadable is added to
 * `p`.
 */
struct options_file_sink {
    void (*give)(void *context, const struct option *o, const char *where, const char *text);
    void *context;
};

void options_file_read(const struct options_program *program, const char *path,
                       const struct options_file_sink *sink, struct problems *p);

#endif
