/* Server-sent events line by line: every event of ours is one `data:` line. */
#include "client/events.h"

#include <stdlib.h>
#include <string.h>

#define FIELD "data:"

void events_init(struct events *e, void (*data)(void *, const char *, size_t), void *context)
{
    *e = (struct events){.data = data, .context = context};
}

void events_fini(struct events *e)
{
    free(e->line);
    *e = (struct events){0};
}

static void end_line(struct events *e)
{
    size_t field = strlen(FIELD);
    if (e->length && e->line[e->length - 1] == '\r')
        e->length--;
    if (e->length >= field && !memcmp(e->line, FIELD, field)) {
        const char *text = e->line + field;
        size_t length = e->length - field;
        e->line[e->length] = 0;
        if (length && *text == ' ') {
            text++;
            length--;
        }
        e->data(e->context, text, length);
    }
    e->length = 0;
}

/* Room for one more byte and the zero after it. */
static bool grow(struct events *e)
{
    if (e->length + 2 <= e->room)
        return true;
    size_t room = e->room ? 2 * e->room : 4096;
    char *line = room <= EVENTS_LINE ? realloc(e->line, room) : NULL;
    if (!line) {
        e->damaged = true;
        return false;
    }
    e->line = line;
    e->room = room;
    return true;
}

void events_feed(struct events *e, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length && !e->damaged; i++) {
        if (!grow(e))
            return;
        if (bytes[i] == '\n')
            end_line(e);
        else
            e->line[e->length++] = bytes[i];
    }
}
