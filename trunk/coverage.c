/* Coverage: see the header. */
#include "trunk/coverage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/tile_hello.h"

int coverage_open(struct coverage *c, const struct shape *s, const uint32_t layers[2],
                  struct links *ls)
{
    memset(c, 0, sizeof *c);
    int r = tile_coverage_open(&c->tiles, s, layers[0], layers[1]);
    if (r)
        return r;
    pthread_mutex_init(&c->lock, NULL);
    c->shape = s;
    c->links = ls;
    c->summary.generation = UINT64_MAX; /* nothing was looked at */
    return 0;
}

void coverage_close(struct coverage *c)
{
    if (!c->shape)
        return;
    tile_coverage_close(&c->tiles);
    pthread_mutex_destroy(&c->lock);
}

int coverage_add_peer(struct coverage *c, struct link *l)
{
    if (c->peers == COVERAGE_PEERS)
        return -ENOSPC;
    c->peer[c->peers++].link = l;
    return 0;
}

/* What the peer's last Hello says. The tiles of one that was never heard are none. */
static void read_hello(const struct coverage *c, struct coverage_peer *p)
{
    const Kapok__HelloReply *h = link_hello_get(p->link);
    const char *why = NULL;
    if (h && strcmp(h->role, "expertd") != 0)
        why = "it is no expertd";
    else if (h && !tile_hello_read(&p->tiles, h, c->shape, &why))
        p->payload_most = h->payload_most;
    if (why) {
        p->up = false;
        snprintf(p->why, sizeof p->why, "%s", why);
    }
    link_hello_put(p->link);
}

static void look_at(const struct coverage *c, struct coverage_peer *p)
{
    struct link_status status;
    link_status(p->link, &status);
    p->up = status.state == LINK_UP;
    snprintf(p->why, sizeof p->why, "%s: %s", link_state_name(status.state), status.reason);
    read_hello(c, p);
}

/* The peers that are away, for a sentence. */
static void name_absent(const struct coverage *c, char *text, size_t size)
{
    size_t length = 0;
    text[0] = 0;
    for (size_t i = 0; i < c->peers && length < size; i++)
        if (!c->peer[i].up)
            length += (size_t)snprintf(text + length, size - length, "%s%s is %s",
                                       length ? ", " : "; ", link_address(c->peer[i].link),
                                       c->peer[i].why);
}

static void summarise(struct coverage *c)
{
    struct coverage_summary *s = &c->summary;
    uint32_t tile[3];
    char absent[400];
    s->needed = tile_coverage_needed(&c->tiles);
    s->covered = tile_coverage_held(&c->tiles);
    s->missing[0] = 0;
    if (!tile_coverage_missing(&c->tiles, tile))
        return;
    name_absent(c, absent, sizeof absent);
    snprintf(s->missing, sizeof s->missing,
             "layer %u expert %u band %u is held by no expertd that answers%s", tile[0],
             tile[1], tile[2], absent);
}

void coverage_look(struct coverage *c, struct coverage_summary *ret_summary)
{
    pthread_mutex_lock(&c->lock);
    uint64_t now = links_generation(c->links);
    if (c->summary.generation != now) {
        c->summary.generation = now;
        tile_coverage_clear(&c->tiles);
        for (size_t i = 0; i < c->peers; i++) {
            look_at(c, &c->peer[i]);
            if (c->peer[i].up)
                tile_coverage_add(&c->tiles, &c->peer[i].tiles);
        }
        summarise(c);
    }
    *ret_summary = c->summary;
    pthread_mutex_unlock(&c->lock);
}

void coverage_peer(struct coverage *c, size_t i, struct coverage_peer *ret_peer)
{
    pthread_mutex_lock(&c->lock);
    *ret_peer = c->peer[i];
    pthread_mutex_unlock(&c->lock);
}
