/*
 * A choice's text as it grows, and the stop strings in it, which may begin in one token and end
 * in another: text that may yet turn out to be the beginning of one is held back.
 */
#ifndef COORDINATOR_WORDING_H
#define COORDINATOR_WORDING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct wording {
    char *const *stop; /* borrowed */
    size_t stops;
    char *text; /* everything so far; text[0..released) may be told */
    size_t length, released, room;
    bool stopped;
};

void wording_init(struct wording *w, char *const *stop, size_t stops);
void wording_fini(struct wording *w);

/* Adds text (whole UTF-8 sequences). True: a stop string ends it; the text is cut before it,
 * and nothing more is added. When there is no memory it counts as stopped. */
bool wording_add(struct wording *w, const char *text, size_t length);

/* What has been released since it was at `before`, as a JSON string; a new reference. */
json_t *wording_since(const struct wording *w, size_t before);

/* The end: what was held back may be told. */
void wording_end(struct wording *w);

#endif
