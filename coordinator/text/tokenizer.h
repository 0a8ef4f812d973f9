/*
 * Text to token ids and back, exactly as the release does it (model.md section 4).
 *
 * The vocabulary is `tiktoken.model` and, for the control tokens, `tokenizer_config.json` of
 * the checkpoint's folder; ids that neither names are reserved tokens. Control tokens are
 * recognised only where the caller says so: text of a user, a tool or a name never makes one.
 */
#ifndef COORDINATOR_TEXT_TOKENIZER_H
#define COORDINATOR_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/problems.h"

struct tokenizer;

/* `vocab`: ids of the model. -ENOENT, without a sentence, when the folder has no tokenizer;
 * -EINVAL and others with sentences. */
int tokenizer_open(struct tokenizer **ret_t, const char *folder, uint32_t vocab,
                   struct problems *p);
void tokenizer_close(struct tokenizer *t);

/* The ids of `text`, any bytes, malloc'ed. `control`: literals of control tokens in it become
 * those tokens. Any thread; one at a time waits for the other. -ENOMEM, -EINVAL. */
int tokenizer_encode(struct tokenizer *t, const char *text, size_t length, bool control,
                     uint32_t **ret_ids, size_t *ret_count);

/* The bytes of an id below vocab: of an ordinary token, or a control token's literal. */
const uint8_t *tokenizer_bytes(const struct tokenizer *t, uint32_t id, size_t *ret_length);
bool tokenizer_is_control(const struct tokenizer *t, uint32_t id);

/* The id of a control token by its literal; -1 when there is none. */
int64_t tokenizer_control(const struct tokenizer *t, const char *literal);

/*
 * Bytes of tokens to text while it is being generated: an incomplete UTF-8 sequence at the end
 * is held back until its rest comes; what cannot become UTF-8 comes out as U+FFFD.
 */
struct tokenizer_stream {
    uint8_t held[4];
    unsigned count;
};

/* Room that tokenizer_stream_push() needs for n bytes, with a zero at the end. */
static inline size_t tokenizer_stream_room(size_t n)
{
    return 3 * (n + 4) + 1;
}

/* Writes the text that is complete now, zero-terminated; gives its length. */
size_t tokenizer_stream_push(struct tokenizer_stream *s, const uint8_t *bytes, size_t n,
                             char *out);

/* The end: what is held back comes out as U+FFFD. Room for 4 bytes. */
size_t tokenizer_stream_end(struct tokenizer_stream *s, char *out);

#endif
