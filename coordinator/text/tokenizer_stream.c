/*
 * Bytes to UTF-8 as they come. A byte that cannot go on what is held ends it: the maximal part
 * that was well-formed so far becomes one U+FFFD (Unicode 15, 3.9, as decoders commonly do).
 */
#include <string.h>

#include "coordinator/text/tokenizer.h"

#define REPLACEMENT "\xef\xbf\xbd"

/* Bytes of the sequence that this byte begins; 0 when none begins so. */
static unsigned sequence_bytes(uint8_t lead)
{
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2 || lead > 0xf4)
        return 0;
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* May `byte` follow as the second? Overlong forms, surrogates and what lies beyond U+10FFFF are
 * told by it. */
static bool second_fits(uint8_t lead, uint8_t byte)
{
    uint8_t least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    uint8_t most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    return byte >= least && byte <= most;
}

static bool fits(const struct tokenizer_stream *s, uint8_t byte)
{
    return s->count == 1 ? second_fits(s->held[0], byte) : (byte & 0xc0) == 0x80;
}

static size_t put(char *out, const void *bytes, size_t n)
{
    memcpy(out, bytes, n);
    return n;
}

static size_t take(struct tokenizer_stream *s, uint8_t byte, char *out)
{
    size_t made = 0;
    if (s->count && !fits(s, byte)) {
        made = put(out, REPLACEMENT, 3);
        s->count = 0;
    }
    if (!s->count && !sequence_bytes(byte))
        return made + put(out + made, REPLACEMENT, 3);
    s->held[s->count++] = byte;
    if (s->count == sequence_bytes(s->held[0])) {
        made += put(out + made, s->held, s->count);
        s->count = 0;
    }
    return made;
}

size_t tokenizer_stream_push(struct tokenizer_stream *s, const uint8_t *bytes, size_t n,
                             char *out)
{
    size_t made = 0;
    for (size_t i = 0; i < n; i++)
        made += take(s, bytes[i], out + made);
    out[made] = 0;
    return made;
}

size_t tokenizer_stream_end(struct tokenizer_stream *s, char *out)
{
    size_t made = s->count ? put(out, REPLACEMENT, 3) : 0;
    s->count = 0;
    out[made] = 0;
    return made;
}
