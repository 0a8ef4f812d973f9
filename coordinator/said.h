/*
 * The text of a choice, made from its tokens as they come: control tokens say nothing, an
 * incomplete character is held back until its rest is there. Without a tokenizer the text stays
 * empty.
 */
#ifndef COORDINATOR_SAID_H
#define COORDINATOR_SAID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coordinator/text/tokenizer.h"

struct said {
    const struct tokenizer *tokenizer; /* NULL: none */
    struct tokenizer_stream stream;
    char *text; /* zero-terminated UTF-8, may hold zeros; NULL while empty */
    size_t length, room;
};

/* A piece of the text. */
struct said_piece {
    const char *text;
    size_t length;
};

void said_init(struct said *s, const struct tokenizer *t);
void said_fini(struct said *s);

/* What a token adds; valid until the next call. -ENOMEM. */
int said_add(struct said *s, uint32_t token, struct said_piece *ret_piece);

/* What was held back at the end. */
int said_end(struct said *s, struct said_piece *ret_piece);

/* Everything so far. */
struct said_piece said_whole(const struct said *s);

#endif
