/*
 * JSON from outside, parsed strictly (jansson): valid UTF-8, no duplicate keys, nothing after
 * the end, a bound on length, and an error that names the place.
 */
#ifndef BASE_JSONTEXT_H
#define BASE_JSONTEXT_H

#include <jansson.h>
#include <stddef.h>

#include "base/problems.h"

/* The document, to be released with json_decref(); NULL with a sentence added that begins with
 * `name` (a file name or "request body"). Top level must be an object or array. */
json_t *jsontext_parse(const char *name, const char *bytes, size_t length, struct problems *p);

/* Reads and parses a file of at most `most` bytes. */
json_t *jsontext_file(const char *path, size_t most, struct problems *p);

#endif
