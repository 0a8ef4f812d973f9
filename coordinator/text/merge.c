/*
 * Merging with a linked list of parts and a heap of pairs, so that a piece of n bytes takes
 * n log n steps. A pair in the heap may be out of date (one of its parts was merged away, or
 * has grown); it then names another end than the list does, and is dropped.
 */
#include "coordinator/text/merge.h"

#include <errno.h>
#include <stdlib.h>

#define NOBODY SIZE_MAX

struct merge_part {
    size_t end;            /* one past its last byte; 0: merged away */
    size_t before, behind; /* starts of its neighbours */
};

struct merge_pair {
    uint32_t rank;
    size_t start, end; /* of both parts together */
};

void merge_init(struct merge *m, const struct ranks *ranks)
{
    *m = (struct merge){.ranks = ranks};
}

void merge_fini(struct merge *m)
{
    free(m->part);
    free(m->pair);
}

static int grow(struct merge *m, size_t n)
{
    if (n <= m->room)
        return 0;
    size_t room = 2 * n;
    struct merge_part *part = realloc(m->part, room * sizeof *part);
    if (part)
        m->part = part;
    /* Every merge makes at most two new pairs. */
    struct merge_pair *pair = realloc(m->pair, 3 * room * sizeof *pair);
    if (pair)
        m->pair = pair;
    if (!part || !pair)
        return -ENOMEM;
    m->room = room;
    return 0;
}

static int comes_before(const struct merge_pair *a, const struct merge_pair *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->start < b->start;
}

static void push(struct merge *m, struct merge_pair p)
{
    size_t i = m->pairs++;
    for (; i && comes_before(&p, &m->pair[(i - 1) / 2]); i = (i - 1) / 2)
        m->pair[i] = m->pair[(i - 1) / 2];
    m->pair[i] = p;
}

static struct merge_pair pop(struct merge *m)
{
    struct merge_pair top = m->pair[0], last = m->pair[--m->pairs];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < m->pairs; i = child) {
        if (child + 1 < m->pairs && comes_before(&m->pair[child + 1], &m->pair[child]))
            child++;
        if (!comes_before(&m->pair[child], &last))
            break;
        m->pair[i] = m->pair[child];
    }
    m->pair[i] = last;
    return top;
}

/* The part at `start` and the one behind it, when they have a rank together. */
static void offer(struct merge *m, const uint8_t *bytes, size_t start)
{
    size_t behind = start == NOBODY ? NOBODY : m->part[start].behind;
    if (behind == NOBODY)
        return;
    size_t end = m->part[behind].end;
    uint32_t rank = ranks_find(m->ranks, bytes + start, end - start);
    if (rank != RANKS_NONE)
        push(m, (struct merge_pair){rank, start, end});
}

static void join(struct merge *m, const uint8_t *bytes, const struct merge_pair *p)
{
    struct merge_part *left = &m->part[p->start], *right = &m->part[left->behind];
    left->end = right->end;
    right->end = 0;
    left->behind = right->behind;
    if (left->behind != NOBODY)
        m->part[left->behind].before = p->start;
    offer(m, bytes, left->before);
    offer(m, bytes, p->start);
}

static int is_current(const struct merge *m, const struct merge_pair *p)
{
    const struct merge_part *left = &m->part[p->start];
    return left->end && left->behind != NOBODY && m->part[left->behind].end == p->end;
}

ptrdiff_t merge_piece(struct merge *m, const uint8_t *bytes, size_t n, uint32_t *out)
{
    ptrdiff_t count = 0;
    uint32_t whole = ranks_find(m->ranks, bytes, n);
    if (whole != RANKS_NONE) {
        out[0] = whole;
        return 1;
    }
    if (grow(m, n))
        return -ENOMEM;
    m->pairs = 0;
    for (size_t i = 0; i < n; i++)
        m->part[i] = (struct merge_part){i + 1, i ? i - 1 : NOBODY, i + 1 < n ? i + 1 : NOBODY};
    for (size_t i = 0; i < n; i++)
        offer(m, bytes, i);
    while (m->pairs) {
        struct merge_pair p = pop(m);
        if (is_current(m, &p))
            join(m, bytes, &p);
    }
    for (size_t i = 0; i != NOBODY; i = m->part[i].behind)
        out[count++] = ranks_find(m->ranks, bytes + i, m->part[i].end - i);
    return count;
}
