/* The text of a choice: see the header. */
#include "coordinator/said.h"

#include <errno.h>
#include <stdlib.h>

void said_init(struct said *s, const struct tokenizer *t)
{
    *s = (struct said){.tokenizer = t};
}

void said_fini(struct said *s)
{
    free(s->text);
    *s = (struct said){0};
}

static int grow(struct said *s, size_t more)
{
    if (s->length + more <= s->room)
        return 0;
    size_t room = 2 * (s->length + more);
    char *text = realloc(s->text, room);
    if (text == NULL)
        return -ENOMEM;
    s->text = text;
    s->room = room;
    return 0;
}

int said_add(struct said *s, uint32_t token, struct said_piece *ret_piece)
{
    size_t n = 0, before = s->length;
    const uint8_t *bytes = NULL;
    if (s->tokenizer == NULL || tokenizer_is_control(s->tokenizer, token)) {
        *ret_piece = (struct said_piece){"", 0};
        return 0;
    }
    bytes = tokenizer_bytes(s->tokenizer, token, &n);
    if (grow(s, tokenizer_stream_room(n)) != 0)
        return -ENOMEM;
    s->length += tokenizer_stream_push(&s->stream, bytes, n, s->text + s->length);
    *ret_piece = (struct said_piece){s->text + before, s->length - before};
    return 0;
}

int said_end(struct said *s, struct said_piece *ret_piece)
{
    size_t before = s->length;
    if (grow(s, tokenizer_stream_room(0)) != 0)
        return -ENOMEM;
    s->length += tokenizer_stream_end(&s->stream, s->text + s->length);
    *ret_piece = (struct said_piece){s->text + before, s->length - before};
    return 0;
}

struct said_piece said_whole(const struct said *s)
{
    return (struct said_piece){s->text != NULL ? s->text : "", s->length};
}
