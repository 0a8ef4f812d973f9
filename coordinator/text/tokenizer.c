/* Text to ids: control tokens are cut out first where allowed, the rest goes through pieces and
 * merges. See the header. */
#include "coordinator/text/tokenizer.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsontext.h"
#include "coordinator/text/merge.h"
#include "coordinator/text/pieces.h"
#include "coordinator/text/ranks.h"

#define CONFIG_MOST   ((size_t)16 << 20)
#define LITERAL_BYTES 64

struct tokenizer {
    struct ranks ranks;
    uint32_t vocab;
    char (*literal)[LITERAL_BYTES]; /* of id ranks.count + i */
    pthread_mutex_t lock;           /* of what encoding uses: */
    struct pieces *pieces;
    struct merge merge;
};

/* ---- opening ------------------------------------------------------------------------------
 */

static uint32_t controls(const struct tokenizer *t)
{
    return t->vocab - t->ranks.count;
}

/* One entry of added_tokens_decoder. */
static void take_added(struct tokenizer *t, const char *path, const char *key,
                       const json_t *entry, struct problems *p)
{
    const char *content = json_string_value(json_object_get(entry, "content"));
    char *end;
    unsigned long id = strtoul(key, &end, 10);
    if (*end || end == key || id < t->ranks.count || id >= t->vocab)
        problems_add(p, "%s: added_tokens_decoder.%.40s: expected an id from %u to %u", path,
                     key, t->ranks.count, t->vocab - 1);
    else if (!content || !*content || strlen(content) >= LITERAL_BYTES)
        problems_add(p,
                     "%s: added_tokens_decoder.%.40s.content: expected 1 to %d bytes of text",
                     path, key, LITERAL_BYTES - 1);
    else
        snprintf(t->literal[id - t->ranks.count], LITERAL_BYTES, "%s", content);
}

static int read_config(struct tokenizer *t, const char *folder, struct problems *p)
{
    char path[4096];
    const char *key;
    json_t *entry;
    size_t before = p->count;
    snprintf(path, sizeof path, "%s/tokenizer_config.json", folder);
    json_t *config = jsontext_file(path, CONFIG_MOST, p);
    json_t *added = json_object_get(config, "added_tokens_decoder");
    if (config && !json_is_object(added))
        problems_add(p, "%s: added_tokens_decoder: expected an object", path);
    json_object_foreach(added, key, entry) take_added(t, path, key, entry, p);
    json_decref(config);
    return p->count > before ? -EINVAL : 0;
}

static int name_controls(struct tokenizer *t, const char *folder, struct problems *p)
{
    t->literal = calloc(controls(t) + 1, sizeof *t->literal);
    if (!t->literal)
        return -ENOMEM;
    for (uint32_t i = 0; i < controls(t); i++)
        snprintf(t->literal[i], LITERAL_BYTES, "<|reserved_token_%u|>", t->ranks.count + i);
    return read_config(t, folder, p);
}

int tokenizer_open(struct tokenizer **ret_t, const char *folder, uint32_t vocab,
                   struct problems *p)
{
    char path[4096];
    struct tokenizer *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    t->vocab = vocab;
    pthread_mutex_init(&t->lock, NULL);
    merge_init(&t->merge, &t->ranks);
    snprintf(path, sizeof path, "%s/tiktoken.model", folder);
    int r = ranks_open(&t->ranks, path, vocab, p);
    if (!r)
        r = name_controls(t, folder, p);
    if (!r)
        r = pieces_open(&t->pieces, p);
    if (r) {
        tokenizer_close(t);
        return r;
    }
    *ret_t = t;
    return 0;
}

void tokenizer_close(struct tokenizer *t)
{
    if (!t)
        return;
    pieces_close(t->pieces);
    merge_fini(&t->merge);
    ranks_close(&t->ranks);
    pthread_mutex_destroy(&t->lock);
    free(t->literal);
    free(t);
}

/* ---- encoding -----------------------------------------------------------------------------
 */

struct ids {
    struct tokenizer *tokenizer;
    uint32_t *id;
    size_t count, room;
};

static int ids_room(struct ids *ids, size_t more)
{
    if (ids->count + more <= ids->room)
        return 0;
    size_t room = 2 * (ids->count + more) + 64;
    uint32_t *id = realloc(ids->id, room * sizeof *id);
    if (!id)
        return -ENOMEM;
    ids->id = id;
    ids->room = room;
    return 0;
}

static int add_piece(void *context, const uint8_t *bytes, size_t n)
{
    struct ids *ids = context;
    if (ids_room(ids, n))
        return -ENOMEM;
    ptrdiff_t made = merge_piece(&ids->tokenizer->merge, bytes, n, ids->id + ids->count);
    if (made < 0)
        return (int)made;
    ids->count += (size_t)made;
    return 0;
}

/* The control token whose literal begins at `text`, the longest one; RANKS_NONE. */
static uint32_t control_at(const struct tokenizer *t, const char *text, size_t length)
{
    uint32_t found = RANKS_NONE;
    size_t longest = 0;
    for (uint32_t i = 0; i < controls(t); i++) {
        size_t n = strlen(t->literal[i]);
        if (n > longest && n <= length && !memcmp(text, t->literal[i], n)) {
            found = t->ranks.count + i;
            longest = n;
        }
    }
    return found;
}

static int encode_ordinary(struct ids *ids, const char *text, size_t length)
{
    return pieces_walk(ids->tokenizer->pieces, (const uint8_t *)text, length, add_piece, ids);
}

static int encode_control(struct ids *ids, const char *text, size_t length)
{
    size_t from = 0;
    for (size_t at = 0; at < length;) {
        uint32_t id = control_at(ids->tokenizer, text + at, length - at);
        if (id == RANKS_NONE) {
            at++;
            continue;
        }
        int r = encode_ordinary(ids, text + from, at - from);
        if (!r)
            r = ids_room(ids, 1);
        if (r)
            return r;
        ids->id[ids->count++] = id;
        at += strlen(ids->tokenizer->literal[id - ids->tokenizer->ranks.count]);
        from = at;
    }
    return encode_ordinary(ids, text + from, length - from);
}

int tokenizer_encode(struct tokenizer *t, const char *text, size_t length, bool control,
                     uint32_t **ret_ids, size_t *ret_count)
{
    struct ids ids = {.tokenizer = t};
    pthread_mutex_lock(&t->lock);
    int r = ids_room(&ids, 1);
    if (!r)
        r = control ? encode_control(&ids, text, length) : encode_ordinary(&ids, text, length);
    pthread_mutex_unlock(&t->lock);
    if (r) {
        free(ids.id);
        return r;
    }
    *ret_ids = ids.id;
    *ret_count = ids.count;
    return 0;
}

/* ---- decoding -----------------------------------------------------------------------------
 */

const uint8_t *tokenizer_bytes(const struct tokenizer *t, uint32_t id, size_t *ret_length)
{
    if (id < t->ranks.count)
        return ranks_bytes(&t->ranks, id, ret_length);
    const char *literal = t->literal[id - t->ranks.count];
    *ret_length = strlen(literal);
    return (const uint8_t *)literal;
}

bool tokenizer_is_control(const struct tokenizer *t, uint32_t id)
{
    return id >= t->ranks.count;
}

int64_t tokenizer_control(const struct tokenizer *t, const char *literal)
{
    for (uint32_t i = 0; i < controls(t); i++)
        if (!strcmp(t->literal[i], literal))
            return (int64_t)t->ranks.count + i;
    return -1;
}
