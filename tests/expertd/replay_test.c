/*
 * The cache, replayed on the recorded routing of real runs: bytes read per token for ours, for
 * LRU and for the best there could be (who knows the future and may pass things by), at several
 * sizes of memory. Ours is the program's own cache.c. Experts are whole, one request a layer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/disk.h"
#include "expertd/cache.h"

#define LAYERS       93
#define EXPERTS      896
#define EXPERT_BYTES 17551360.0 /* with the page that O_DIRECT adds */
#define NEVER        INT32_MAX

#ifndef SOURCE_ROOT
#error SOURCE_ROOT
#endif

struct trace {
    const char *name;
    size_t count, room;
    int32_t *key;  /* layer * EXPERTS + expert */
    int32_t *next; /* when it is wanted again */
    size_t tokens;
};

static void add(struct trace *t, unsigned layer, unsigned expert)
{
    if (t->count == t->room) {
        t->room = t->room ? 2 * t->room : 1 << 16;
        t->key = realloc(t->key, t->room * sizeof *t->key);
    }
    assert_in_range(layer, 1, LAYERS - 1);
    assert_in_range(expert, 0, EXPERTS - 1);
    t->key[t->count++] = (int32_t)(layer * EXPERTS + expert);
}

/* Requests are runs of one layer; an expert that several rows want is wanted once. */
static void fold(struct trace *t)
{
    size_t n = 0;
    for (size_t i = 0, begun = 0; i < t->count; i++) {
        bool seen = false;
        if (i && t->key[i] / EXPERTS != t->key[i - 1] / EXPERTS)
            begun = n;
        for (size_t k = begun; k < n; k++)
            seen |= t->key[k] == t->key[i];
        if (!seen)
            t->key[n++] = t->key[i];
    }
    t->count = n;
}

static void look_ahead(struct trace *t)
{
    int32_t *when = malloc(LAYERS * EXPERTS * sizeof *when);
    t->next = malloc(t->count * sizeof *t->next);
    for (size_t i = 0; i < (size_t)LAYERS * EXPERTS; i++)
        when[i] = NEVER;
    for (size_t i = t->count; i-- > 0;) {
        t->next[i] = when[t->key[i]];
        when[t->key[i]] = (int32_t)i;
    }
    free(when);
}

static bool load_text(struct trace *t, const char *path)
{
    unsigned layer, expert;
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    while (fscanf(f, "%u %u", &layer, &expert) == 2)
        add(t, layer, expert);
    fclose(f);
    return true;
}

static bool load_pairs(struct trace *t, const char *path)
{
    int32_t pair[2];
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    while (fread(pair, sizeof pair, 1, f) == 1)
        add(t, (unsigned)pair[0], (unsigned)pair[1]);
    fclose(f);
    return true;
}

static void finish(struct trace *t, const char *name)
{
    t->name = name;
    t->tokens = t->count / ((LAYERS - 1) * 16);
    fold(t);
    look_ahead(t);
}

static void drop(struct trace *t)
{
    free(t->key);
    free(t->next);
}

/* ---- three caches ---------------------------------------------------------------------- */

/* Serves one request [from, to); gives the misses. As the drive does: what is there is used
 * first, what is being computed is pinned. */
static size_t serve(struct cache *c, const struct trace *t, size_t from, size_t to)
{
    struct cache_entry *pinned[EXPERTS];
    uint32_t layer = (uint32_t)(t->key[from] / EXPERTS);
    size_t pins = 0, misses = 0, done = 0;
    cache_visit(c, layer);
    for (size_t i = from; i < to; i++)
        cache_use(c, layer, (uint32_t)(t->key[i] % EXPERTS));
    for (size_t i = from; i < to; i++) {
        uint32_t expert = (uint32_t)(t->key[i] % EXPERTS);
        struct cache_entry *e = cache_find(c, layer, expert, 1);
        if (e)
            cache_pin(c, e);
        for (misses += !e; !e && !(e = cache_take(c, layer, expert, 1)); done++)
            cache_unpin(c, pinned[done]);
        e->state = CACHE_READY;
        pinned[pins++] = e;
    }
    for (; done < pins; done++)
        cache_unpin(c, pinned[done]);
    return misses;
}

static size_t ours(const struct trace *t, size_t slots)
{
    static const struct shape shape = {.layers = LAYERS, .dense_layers = 1, .experts = EXPERTS};
    struct memory m;
    struct cache c;
    size_t misses = 0;
    memory_init(&m, 0);
    assert_int_equal(cache_open(&c, &shape, slots, DISK_PAGE, &m), 0);
    for (size_t from = 0, to; from < t->count; from = to) {
        for (to = from; to < t->count && t->key[to] / EXPERTS == t->key[from] / EXPERTS; to++)
            ;
        misses += serve(&c, t, from, to);
    }
    memory_fini(&m);
    return misses;
}

/* Keeps the slots whose value is largest: for LRU the time of the last use, for the optimum
 * the negative time of the next. A heap would be faster; this is plain. */
static size_t plain(const struct trace *t, size_t slots, bool optimum)
{
    int32_t *place = malloc(LAYERS * EXPERTS * sizeof *place), *held, *value;
    size_t count = 0, misses = 0;
    held = malloc((slots + 1) * sizeof *held);
    value = malloc((slots + 1) * sizeof *value);
    memset(place, 0xff, LAYERS * EXPERTS * sizeof *place);
    for (size_t i = 0; i < t->count; i++) {
        int32_t key = t->key[i], worth = optimum ? -t->next[i] : (int32_t)i;
        if (place[key] >= 0) {
            value[place[key]] = worth;
            continue;
        }
        misses++;
        place[key] = (int32_t)count;
        held[count] = key;
        value[count++] = worth;
        if (count <= slots)
            continue;
        size_t least = 0;
        for (size_t k = 1; k < count; k++)
            if (value[k] < value[least])
                least = k;
        place[held[least]] = -1;
        count--;
        if (least != count) {
            held[least] = held[count];
            value[least] = value[count];
            place[held[least]] = (int32_t)least;
        }
    }
    free(place);
    free(held);
    free(value);
    return misses;
}

/* ---- what is asked of ours ------------------------------------------------------------- */

struct row {
    unsigned gigabytes;
    double hits_least; /* of ours */
    bool not_below_lru;
};

static void compare(const struct trace *t, const struct row *row, size_t rows)
{
    printf("%s: %zu tokens, %zu experts wanted\n", t->name, t->tokens, t->count);
    printf("  memory  GB per token: LRU, ours, optimum       hits: LRU, ours, optimum\n");
    for (size_t i = 0; i < rows; i++) {
        size_t slots = (size_t)(row[i].gigabytes * 1e9 / EXPERT_BYTES);
        double n = (double)t->count, gb = 1e-9 * EXPERT_BYTES / (double)t->tokens;
        double lru = (double)plain(t, slots, false), best = (double)plain(t, slots, true);
        double our = (double)ours(t, slots);
        printf("  %3u GB        %8.2f %8.2f %8.2f           %5.1f %% %5.1f %% %5.1f %%\n",
               row[i].gigabytes, gb * lru, gb * our, gb * best, 100 - 100 * lru / n,
               100 - 100 * our / n, 100 - 100 * best / n);
        assert_true(1 - our / n >= row[i].hits_least);
        assert_true(our >= best);
        /* At 128 GB there is nothing between the two but two experts in 17,664. */
        if (row[i].not_below_lru)
            assert_true(our <= 1.001 * lru);
    }
}

static void token_after_token(void **state)
{
    static const struct row row[] = {
        {8, 0.08, true}, {16, 0.15, true}, {32, 0, true}, {64, 0, true}, {128, 0, true}};
    struct trace t = {0};
    if (!load_text(&t, SOURCE_ROOT "/../shared/data/traces/incremental-12-tokens.txt"))
        skip();
    finish(&t, "twelve tokens, one after the other");
    compare(&t, row, sizeof row / sizeof *row);
    drop(&t);
}

static void growing_prefixes(void **state)
{
    static const struct row row[] = {
        {8, 0.02, true}, {16, 0.06, true}, {32, 0, true}, {64, 0, true}, {128, 0, true}};
    struct trace t = {0};
    if (!load_pairs(&t, SOURCE_ROOT "/../shared/data/traces/reprefill.bin"))
        skip();
    finish(&t, "eight passes over a growing prefix");
    compare(&t, row, sizeof row / sizeof *row);
    drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(token_after_token),
        cmocka_unit_test(growing_prefixes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
