/*
 * Strict JSON. jansson alone decides what is JSON; this file sets the flags and turns its
 * errors into sentences. What it refuses by itself: bytes that are not UTF-8, NUL in strings,
 * numbers that do not fit, more than 2048 levels.
 */
#include "base/jsontext.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

json_t *jsontext_parse(const char *name, const char *bytes, size_t length, struct problems *p)
{
    json_error_t error;
    json_t *document = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &error);

    if (!document && error.text[0] == '\0')
        problems_add(p, "%s: not enough memory for a JSON document of %zu bytes", name, length);
    else if (!document)
        problems_add(p, "%s: not valid JSON at line %d, column %d: %s", name, error.line,
                     error.column, error.text);
    return document;
}

json_t *jsontext_file(const char *path, size_t most, struct problems *p)
{
    char *bytes;
    size_t length;
    int error = file_read(path, most, &bytes, &length);

    if (error == -EFBIG) {
        problems_add(p, "%s: expected at most %zu bytes, found more", path, most);
        return NULL;
    }
    if (error == -EINVAL) {
        problems_add(p, "%s: expected a regular file", path);
        return NULL;
    }
    if (error) {
        problems_add(p, "%s: cannot be read: %s", path, strerror(-error));
        return NULL;
    }
    json_t *document = jsontext_parse(path, bytes, length, p);
    free(bytes);
    return document;
}
