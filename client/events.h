/*
 * A bounded reader of server-sent events: bytes in any pieces, whole `data` fields out. Comment
 * lines and other fields are passed over.
 */
#ifndef CLIENT_EVENTS_H
#define CLIENT_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#define EVENTS_LINE                                                                            \
    ((size_t)16 << 20) /* longest line; a longer one ends the stream as damaged */

struct events {
    void (*data)(void *context, const char *text, size_t length); /* zero-terminated */
    void *context;
    char *line;
    size_t length, room;
    bool damaged; /* a line too long, or no memory */
};

void events_init(struct events *e, void (*data)(void *, const char *, size_t), void *context);
void events_fini(struct events *e);
void events_feed(struct events *e, const char *bytes, size_t length);

#endif
