/* The ranks: see the header. Strings lie in one block, found by an open-addressed hash table.
 */
#include "coordinator/text/ranks.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/file.h"

#define FILE_MOST ((size_t)256 << 20)
#define LINE_MOST 4096 /* base64 of one string */

struct reading {
    struct ranks *ranks;
    const char *path;
    struct problems *problems;
    size_t line, used; /* used: bytes of the block */
};

static int complain(const struct reading *in, const char *what)
{
    problems_add(in->problems, "%s, line %zu: %s", in->path, in->line, what);
    return -EINVAL;
}

/* Decodes base64 to `out`; negative when it is not that. */
static int decode(const char *text, size_t length, uint8_t *out)
{
    if (!length || length % 4 || length > LINE_MOST)
        return -1;
    int n = EVP_DecodeBlock(out, (const unsigned char *)text, (int)length);
    if (n < 0)
        return -1;
    return n - (text[length - 1] == '=') - (text[length - 2] == '=');
}

static size_t first_slot(const struct ranks *r, const uint8_t *bytes, size_t length)
{
    return XXH3_64bits(bytes, length) & (r->slots - 1);
}

uint32_t ranks_find(const struct ranks *r, const uint8_t *bytes, size_t length)
{
    if (length > r->longest)
        return RANKS_NONE;
    for (size_t i = first_slot(r, bytes, length);; i = (i + 1) & (r->slots - 1)) {
        uint32_t rank = r->slot[i];
        if (rank == RANKS_NONE)
            return RANKS_NONE;
        if (r->offset[rank + 1] - r->offset[rank] == length &&
            !memcmp(r->bytes + r->offset[rank], bytes, length))
            return rank;
    }
}

static void enter(struct ranks *r, uint32_t rank)
{
    size_t length = r->offset[rank + 1] - r->offset[rank];
    size_t i = first_slot(r, r->bytes + r->offset[rank], length);
    while (r->slot[i] != RANKS_NONE)
        i = (i + 1) & (r->slots - 1);
    r->slot[i] = rank;
    if (length > r->longest)
        r->longest = length;
}

static int read_line(struct reading *in, const char *line, size_t length)
{
    struct ranks *r = in->ranks;
    const char *space = memchr(line, ' ', length);
    char expected[16];
    if (!space)
        return complain(in, "expected base64, a space and a rank");
    int n = decode(line, (size_t)(space - line), r->bytes + in->used);
    if (n <= 0)
        return complain(in, "what comes before the space is not base64 of one byte or more");
    snprintf(expected, sizeof expected, "%u", r->count);
    size_t digits = length - (size_t)(space + 1 - line);
    if (digits != strlen(expected) || memcmp(space + 1, expected, digits)) {
        problems_add(in->problems, "%s, line %zu: expected rank %s, found %.*s", in->path,
                     in->line, expected, (int)(digits < 20 ? digits : 20), space + 1);
        return -EINVAL;
    }
    if (ranks_find(r, r->bytes + in->used, (size_t)n) != RANKS_NONE)
        return complain(in, "the string has a rank already");
    in->used += (size_t)n;
    r->offset[r->count + 1] = (uint32_t)in->used;
    enter(r, r->count++);
    return 0;
}

static int read_lines(struct reading *in, const char *text, size_t length, uint32_t most)
{
    for (const char *at = text, *end = text + length; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        in->line++;
        if (in->ranks->count == most) {
            problems_add(in->problems, "%s, line %zu: expected at most %u ranks", in->path,
                         in->line, most);
            return -EINVAL;
        }
        int r = read_line(in, at, (size_t)(stop - at));
        if (r)
            return r;
        at = stop + 1;
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t one = (uint8_t)byte;
        if (ranks_find(in->ranks, &one, 1) == RANKS_NONE) {
            problems_add(in->problems, "%s: byte %u has no rank", in->path, byte);
            return -EINVAL;
        }
    }
    return 0;
}

static int take_room(struct ranks *r, size_t text, uint32_t most)
{
    r->slots = 1024;
    while (r->slots < (size_t)most * 2)
        r->slots *= 2;
    r->bytes = malloc(text + 4); /* base64 is longer than what it says */
    r->offset = calloc((size_t)most + 1, sizeof *r->offset);
    r->slot = malloc(r->slots * sizeof *r->slot);
    if (!r->bytes || !r->offset || !r->slot)
        return -ENOMEM;
    memset(r->slot, 0xff, r->slots * sizeof *r->slot);
    return 0;
}

int ranks_open(struct ranks *r, const char *path, uint32_t most, struct problems *p)
{
    char *text;
    size_t length;
    struct ranks made = {0};
    struct reading in = {.ranks = &made, .path = path, .problems = p};
    int result = file_read(path, FILE_MOST, &text, &length);
    if (result == -ENOENT)
        return result;
    if (result) {
        problems_add(p, "%s: %s", path, strerror(-result));
        return result;
    }
    result = take_room(&made, length, most);
    if (!result)
        result = read_lines(&in, text, length, most);
    free(text);
    if (result) {
        ranks_close(&made);
        return result;
    }
    *r = made;
    return 0;
}

void ranks_close(struct ranks *r)
{
    free(r->bytes);
    free(r->offset);
    free(r->slot);
    *r = (struct ranks){0};
}

const uint8_t *ranks_bytes(const struct ranks *r, uint32_t rank, size_t *ret_length)
{
    *ret_length = r->offset[rank + 1] - r->offset[rank];
    return r->bytes + r->offset[rank];
}
