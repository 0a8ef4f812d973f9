/*
 * The pattern, in the terms of PCRE2 10.42: `\p{Han}` means Script_Extensions there, so the
 * script is `\p{sc:Han}`; there is no intersection of classes, so it is a look-ahead; `\s` also
 * takes U+180E, so white space is spelled out.
 */
#include "coordinator/text/pieces.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define CHUNK_MOST 400000 /* characters */
#define RUN_MOST   25000
#define STACK_MOST ((size_t)8 << 20) /* of the JIT */

#define SPACE                                                                                  \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{"     \
    "202f}"                                                                                    \
    "\\x{205f}\\x{3000}"
#define UPPER  "(?:(?!\\p{sc:Han})[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}])"
#define LOWER  "(?:(?!\\p{sc:Han})[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}])"
#define SUFFIX "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

static const char pattern[] =
    "[\\p{sc:Han}]+"
    "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" SUFFIX "|[^\\r\\n\\p{L}\\p{N}]?" UPPER
    "+" LOWER "*" SUFFIX "|\\p{N}{1,3}"
    "| ?[^" SPACE "\\p{L}\\p{N}]+[\\r\\n]*"
    "|[" SPACE "]*[\\r\\n]+"
    "|[" SPACE "]+(?![^" SPACE "])"
    "|[" SPACE "]+";

struct pieces {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

int pieces_open(struct pieces **ret_pieces, struct problems *p)
{
    int error;
    PCRE2_SIZE at;
    struct pieces *ps = calloc(1, sizeof *ps);
    if (!ps)
        return -ENOMEM;
    ps->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                             PCRE2_UTF | PCRE2_MATCH_INVALID_UTF, &error, &at, NULL);
    if (!ps->code) {
        problems_add(p, "PCRE2 refuses the pattern of the tokenizer at %zu (error %d)", at,
                     error);
        free(ps);
        return -EINVAL;
    }
    pcre2_jit_compile(ps->code, PCRE2_JIT_COMPLETE);
    ps->match = pcre2_match_data_create(1, NULL);
    ps->context = pcre2_match_context_create(NULL);
    ps->stack = pcre2_jit_stack_create(64 << 10, STACK_MOST, NULL);
    if (!ps->match || !ps->context || !ps->stack) {
        pieces_close(ps);
        return -ENOMEM;
    }
    pcre2_jit_stack_assign(ps->context, NULL, ps->stack);
    *ret_pieces = ps;
    return 0;
}

void pieces_close(struct pieces *ps)
{
    if (!ps)
        return;
    pcre2_jit_stack_free(ps->stack);
    pcre2_match_context_free(ps->context);
    pcre2_match_data_free(ps->match);
    pcre2_code_free(ps->code);
    free(ps);
}

/* ---- chunks -------------------------------------------------------------------------------
 */

/* The character at `text` (n >= 1 bytes there); a byte that begins none is one by itself. */
static uint32_t character(const uint8_t *text, size_t n, size_t *ret_bytes)
{
    unsigned lead = text[0];
    size_t bytes = lead < 0x80 ? 1 : lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    uint32_t value = bytes == 1 ? lead : lead & (0xffu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++) {
        if (i >= n || (text[i] & 0xc0) != 0x80) {
            *ret_bytes = 1;
            return lead;
        }
        value = value << 6 | (text[i] & 0x3f);
    }
    *ret_bytes = bytes;
    return value;
}

/* Python's str.isspace(): White_Space, and U+001C to U+001F. */
static bool is_space(uint32_t c)
{
    return (c >= 0x9 && c <= 0xd) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

/* Bytes of the next chunk. */
static size_t chunk_bytes(const uint8_t *text, size_t length, size_t *left)
{
    size_t at = 0, run = 0, bytes;
    bool space = false;
    while (at < length && *left) {
        bool now = is_space(character(text + at, length - at, &bytes));
        run = at && now == space ? run + 1 : 1;
        space = now;
        if (run > RUN_MOST)
            return at;
        at += bytes;
        --*left;
    }
    return at;
}

/* ---- pieces -------------------------------------------------------------------------------
 */

struct walk {
    int (*piece)(void *context, const uint8_t *bytes, size_t n);
    void *context;
};

static int give(const struct walk *w, const uint8_t *bytes, size_t n)
{
    return n ? w->piece(w->context, bytes, n) : 0;
}

static int walk_chunk(struct pieces *ps, const uint8_t *text, size_t length,
                      const struct walk *w)
{
    size_t at = 0;
    while (at < length) {
        int found = pcre2_match(ps->code, text, length, at, 0, ps->match, ps->context);
        if (found == PCRE2_ERROR_NOMATCH)
            return give(w, text + at, length - at);
        if (found < 0)
            return -EINVAL;
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(ps->match);
        int r = give(w, text + at, span[0] - at); /* what is no UTF-8 */
        if (!r)
            r = give(w, text + span[0], span[1] - span[0]);
        if (r)
            return r;
        at = span[1];
    }
    return 0;
}

int pieces_walk(struct pieces *ps, const uint8_t *text, size_t length,
                int (*piece)(void *context, const uint8_t *bytes, size_t n), void *context)
{
    struct walk w = {piece, context};
    size_t left = CHUNK_MOST;
    while (length) {
        size_t n = chunk_bytes(text, length, &left);
        int r = walk_chunk(ps, text, n, &w);
        if (r)
            return r;
        text += n;
        length -= n;
        if (!left)
            left = CHUNK_MOST;
    }
    return 0;
}
