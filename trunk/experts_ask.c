/* One request to an expertd: what goes in, what its answer or its error means. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "proto/compute.h"
#include "trunk/experts_private.h"

/* ---- asking ------------------------------------------------------------------------------ */

/* The first chunk of which the peer is to be asked, its bands and all experts that want just
 * these. False when there is none. */
static bool choose_tiles(struct experts *x, struct experts_peer *p, struct experts_ask *a)
{
    const struct shape *s = x->shape;
    a->experts = 0;
    for (uint32_t chunk = 0; !a->experts && chunk * x->chunk_rows < x->rows; chunk++) {
        a->chunk = chunk;
        for (uint32_t e = 0; e < s->experts; e++) {
            uint64_t *todo = experts_place(x, p->todo, chunk, e);
            if (!*todo || (a->experts && *todo != a->bands))
                continue;
            a->bands = *todo;
            a->expert[a->experts++] = (uint16_t)e;
            *todo = 0;
        }
    }
    return a->experts > 0;
}

/* The rows of the chunk that chose any of the ask's experts, and the payload for them. */
static struct compute gather_rows(struct experts *x, struct experts_ask *a)
{
    const struct routing *r = &x->routing;
    size_t latent = x->shape->latent, total = 0;
    uint32_t first = x->first + a->chunk * x->chunk_rows;
    uint32_t end = x->first + x->rows;
    end = end - first < x->chunk_rows ? end : first + x->chunk_rows;
    a->rows = 0;
    for (uint32_t t = first; t < end; t++) {
        size_t before = total;
        for (size_t i = (size_t)t * r->chosen; i < (size_t)(t + 1) * r->chosen; i++) {
            if (!x->chosen[r->expert[i]])
                continue;
            x->expert_room[total] = r->expert[i];
            x->weight_room[total++] = r->weight[i];
        }
        if (total == before)
            continue;
        memcpy(x->z_room + a->rows * latent, x->z + t * latent, latent * sizeof *x->z);
        a->row[a->rows] = t;
        a->counts[a->rows++] = (uint32_t)(total - before);
    }
    return (struct compute){r->layer,  a->rows,        a->bands,       x->z_room,
                            a->counts, x->expert_room, x->weight_room, total};
}

static void start(struct experts *x, struct experts_ask *a)
{
    memset(x->chosen, 0, x->shape->experts * sizeof *x->chosen);
    for (uint32_t i = 0; i < a->experts; i++)
        x->chosen[a->expert[i]] = true;
    struct compute c = gather_rows(x, a);
    compute_write(&c, x->shape, x->payload_room);
    kapok__request__init(&a->request);
    kapok__compute__init(&a->body);
    a->request.body_case = KAPOK__REQUEST__BODY_COMPUTE;
    a->request.compute = &a->body;
    a->body.layer = c.layer;
    a->body.bands = c.bands;
    a->body.rows = c.rows;
    a->body.n_counts = c.rows;
    a->body.counts = a->counts;
    a->payload.iov_base = x->payload_room;
    a->payload.iov_len = compute_bytes(x->shape, c.rows, c.total);
    a->call.request = &a->request;
    a->call.payload = &a->payload;
    a->call.payload_parts = 1;
    a->call.seconds = x->options.deadline;
    a->call.done = &x->done;
    a->call.owner = a;
    a->busy = true;
    a->cancelled = false;
    link_call_start(&a->call);
}

static struct experts_ask *idle_ask(struct experts_peer *p)
{
    for (size_t i = 0; i < EXPERTS_ASKS; i++)
        if (!p->ask[i].busy)
            return &p->ask[i];
    return NULL;
}

void experts_ask_send(struct experts *x)
{
    for (size_t i = 0; i < x->peers; i++) {
        struct experts_ask *a;
        while (x->peer[i].load && (a = idle_ask(&x->peer[i])) != NULL) {
            if (!choose_tiles(x, &x->peer[i], a))
                break;
            start(x, a);
            pthread_mutex_lock(&x->lock);
            x->counters.requests++;
            pthread_mutex_unlock(&x->lock);
        }
    }
}

/* ---- the answer -------------------------------------------------------------------------- */

static uint64_t tiles_of(const struct experts_ask *a)
{
    return a->experts * (uint64_t)__builtin_popcountll(a->bands);
}

static void add_sums(struct experts *x, const struct experts_ask *a, int64_t *sum)
{
    size_t latent = x->shape->latent;
    const int64_t *part = (const int64_t *)a->call.reply.payload;
    for (uint32_t i = 0; i < a->rows; i++, part += latent) {
        int64_t *row = sum + a->row[i] * latent;
        for (size_t j = 0; j < latent; j++)
            row[j] += part[j];
    }
    x->left -= tiles_of(a);
}

static void count(struct experts *x, const Kapok__ComputeReply *r)
{
    pthread_mutex_lock(&x->lock);
    x->counters.bytes_read += r->bytes_read;
    x->counters.tiles_read += r->tiles_read;
    x->counters.tiles_hit += r->tiles_hit;
    pthread_mutex_unlock(&x->lock);
}

/* The tiles of this ask are to be asked for again. */
static void make_orphans(struct experts *x, const struct experts_ask *a)
{
    for (uint32_t i = 0; i < a->experts; i++)
        *experts_place(x, x->orphan, a->chunk, a->expert[i]) |= a->bands;
    pthread_mutex_lock(&x->lock);
    x->counters.resent++;
    pthread_mutex_unlock(&x->lock);
}

static void fail(struct experts *x, const struct experts_ask *a, int error, const char *why)
{
    snprintf(x->reason, sizeof x->reason, "expertd %s: %s", link_address(a->call.link), why);
    x->error = error;
}

/* An error that the peer itself said. What its disk or its tiles cannot do, a replica may;
 * numbers out of range are the same everywhere. */
static void take_refusal(struct experts *x, struct experts_ask *a)
{
    int error = a->call.error;
    if (error == -ECANCELED || error == -EAGAIN) { /* it is stopping, or full */
        make_orphans(x, a);
    } else if (error == -EIO || error == -ENOENT) {
        fail(x, a, 0, a->call.reason);
        a->peer->failed = true;
        make_orphans(x, a);
    } else {
        fail(x, a, error, a->call.reason);
    }
}

static void take_answer(struct experts *x, struct experts_ask *a, int64_t *sum)
{
    const struct msg *m = &a->call.reply;
    if (m->reply->body_case != KAPOK__REPLY__BODY_COMPUTE ||
        m->payload_bytes != (size_t)a->rows * x->shape->latent * sizeof *sum) {
        fail(x, a, -EPROTO, "its answer is not the sums that were asked for");
        return;
    }
    add_sums(x, a, sum);
    count(x, m->reply->compute);
}

void experts_ask_end(struct experts *x, struct experts_ask *a, int64_t *sum)
{
    a->busy = false;
    a->peer->load -= tiles_of(a);
    if (sum && !a->call.error)
        take_answer(x, a, sum);
    else if (sum && a->call.reply.reply && !a->cancelled)
        take_refusal(x, a);
    else if (sum)
        make_orphans(x, a);
    link_call_release(&a->call);
}

/* ---- silence ----------------------------------------------------------------------------- */

static bool has_replica(const struct experts *x, const struct experts_ask *a)
{
    for (uint32_t i = 0; i < a->experts; i++) {
        uint64_t bands = a->bands;
        for (size_t j = 0; j < x->peers; j++)
            if (x->peer[j].known.up && !x->peer[j].failed)
                bands &=
                    ~tile_set_bands(&x->peer[j].known.tiles, x->routing.layer, a->expert[i]);
        if (bands)
            return false;
    }
    return true;
}

void experts_ask_watch(struct experts *x)
{
    for (size_t i = 0; i < x->peers; i++)
        for (size_t j = 0; !x->peer[i].known.up && j < EXPERTS_ASKS; j++) {
            struct experts_ask *a = &x->peer[i].ask[j];
            if (!a->busy || a->cancelled || !has_replica(x, a))
                continue;
            a->cancelled = true;
            link_call_cancel(&a->call);
        }
}
