/* See the header. A handful of entries: a list, searched from the front. */
#include "coordinator/prefix.h"

#include <stdlib.h>
#include <string.h>

static void kept_free(struct prefix_kept *k)
{
    free(k->seq.token);
    free(k);
}

void prefix_fini(struct prefix *p)
{
    while (p->first != NULL) {
        struct prefix_kept *k = p->first;

        p->first = k->next;
        kept_free(k);
    }
    p->count = 0;
}

/* Takes out of the list what *link points to. */
static struct prefix_kept *unlink_at(struct prefix *p, struct prefix_kept **link)
{
    struct prefix_kept *k = *link;

    *link = k->next;
    p->count--;
    return k;
}

static void put_first(struct prefix *p, struct prefix_kept *k)
{
    k->next = p->first;
    p->first = k;
    p->count++;
}

static void drop_at(struct prefix *p, struct hub *h, struct prefix_kept **link)
{
    struct prefix_kept *k = unlink_at(p, link);

    hub_sequence_close(h, &k->seq);
    kept_free(k);
}

/* What the hub has lost is of no use: running it anew is what the request would do anyway. */
static void drop_stale(struct prefix *p, struct hub *h)
{
    struct prefix_kept **link = &p->first;

    while (*link != NULL) {
        if (hub_sequence_stale(h, &(*link)->seq))
            drop_at(p, h, link);
        else
            link = &(*link)->next;
    }
}

static bool has_twin(const struct prefix *p, const struct sequence *s)
{
    for (const struct prefix_kept *k = p->first; k != NULL; k = k->next)
        if (k->seq.standing == s->standing &&
            memcmp(k->seq.token, s->token, s->standing * sizeof *s->token) == 0)
            return true;
    return false;
}

void prefix_keep(struct prefix *p, struct hub *h, struct sequence *s)
{
    struct prefix_kept *k = NULL;
    size_t bytes = s->standing * sizeof *s->token;

    drop_stale(p, h);
    if (s->standing > 0 && !hub_sequence_stale(h, s) && !has_twin(p, s))
        k = calloc(1, sizeof *k);
    if (k == NULL || (k->seq.token = malloc(bytes)) == NULL) {
        free(k);
        hub_sequence_close(h, s);
        return;
    }
    memcpy(k->seq.token, s->token, bytes);
    k->seq.id = s->id;
    k->seq.epoch = s->epoch;
    k->seq.room = s->room;
    k->seq.count = k->seq.standing = s->standing;
    k->seq.committed = s->committed;
    s->id = 0;
    s->standing = s->committed = 0;
    put_first(p, k);
}

struct prefix_kept *prefix_find(struct prefix *p, const struct hub *h, const uint32_t *token,
                                uint32_t count)
{
    struct prefix_kept **best = NULL;

    for (struct prefix_kept **link = &p->first; *link != NULL; link = &(*link)->next) {
        const struct sequence *s = &(*link)->seq;

        if (s->standing < count && !hub_sequence_stale(h, s) &&
            (best == NULL || s->standing > (*best)->seq.standing) &&
            memcmp(s->token, token, s->standing * sizeof *token) == 0)
            best = link;
    }
    if (best == NULL)
        return NULL;
    put_first(p, unlink_at(p, best));
    return p->first;
}

bool prefix_evict(struct prefix *p, struct hub *h, const struct prefix_kept *spared)
{
    struct prefix_kept **last = NULL;

    for (struct prefix_kept **link = &p->first; *link != NULL; link = &(*link)->next)
        if (*link != spared)
            last = link;
    if (last == NULL)
        return false;
    drop_at(p, h, last);
    return true;
}
