/* See the header. Stop strings are few and short; each addition looks at the unreleased tail.
 */
#include "coordinator/wording.h"

#include <stdlib.h>
#include <string.h>

void wording_init(struct wording *w, char *const *stop, size_t stops)
{
    *w = (struct wording){.stop = stop, .stops = stops};
}

void wording_fini(struct wording *w)
{
    free(w->text);
    *w = (struct wording){0};
}

static bool append(struct wording *w, const char *text, size_t length)
{
    size_t room = w->room > 0 ? w->room : 256;
    char *bigger;

    while (room < w->length + length + 1)
        room *= 2;
    if (room != w->room) {
        bigger = realloc(w->text, room);
        if (bigger == NULL)
            return false;
        w->text = bigger;
        w->room = room;
    }
    memcpy(w->text + w->length, text, length);
    w->length += length;
    w->text[w->length] = 0;
    return true;
}

/* Where the first stop string begins in the tail; length when there is none. */
static size_t first_stop(const struct wording *w)
{
    size_t first = w->length;

    for (size_t i = 0; i < w->stops; i++) {
        size_t n = strlen(w->stop[i]);
        const char *at = memmem(w->text + w->released, w->length - w->released, w->stop[i], n);

        if (at != NULL && (size_t)(at - w->text) < first)
            first = (size_t)(at - w->text);
    }
    return first;
}

/* Bytes at the end that a stop string may begin with. */
static size_t held_back(const struct wording *w)
{
    size_t tail = w->length - w->released, most = 0;

    for (size_t i = 0; i < w->stops; i++) {
        size_t n = strlen(w->stop[i]) - 1;

        for (n = n < tail ? n : tail; n > most; n--)
            if (memcmp(w->text + w->length - n, w->stop[i], n) == 0)
                most = n;
    }
    return most;
}

bool wording_add(struct wording *w, const char *text, size_t length)
{
    size_t end;

    if (w->stopped)
        return true;
    if (!append(w, text, length)) {
        w->stopped = true;
        return true;
    }
    end = first_stop(w);
    w->stopped = end < w->length;
    w->length = end;
    w->text[end] = 0;
    w->released = w->length - (w->stopped ? 0 : held_back(w));
    return w->stopped;
}

json_t *wording_since(const struct wording *w, size_t before)
{
    if (w->released <= before)
        return json_string("");
    return json_stringn(w->text + before, w->released - before);
}

void wording_end(struct wording *w)
{
    w->released = w->length;
}
