/* Thin over proto/link.h: one queue, into which every call ends. */
#include "tests/expertd/asker.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE 120 /* seconds */

void asker_open(struct asker *a, const char *folder, const char *secret, const char *address)
{
    struct links_options o = {.role = "trunk", .payload_most = (uint64_t)1 << 28};
    struct checkpoint c;
    struct problems p;
    problems_init(&p);
    int r = checkpoint_open(&c, folder, &p);
    assert(!r);
    memcpy(o.model, c.digest, sizeof o.model);
    checkpoint_close(&c);
    r = secret_load(secret, o.secret, &p);
    assert(!r);
    r = queue_open(&a->done, 1024);
    assert(!r);
    r = links_open(&a->links, &o);
    assert(!r);
    r = links_add(a->links, address, &a->link, &p);
    assert(!r);
    r = links_start(a->links);
    assert(!r);
}

void asker_close(struct asker *a)
{
    links_close(a->links);
    queue_free(&a->done);
}

static void start(struct asker_call *c, struct asker *a)
{
    int r = link_call_open(&c->call, a->link);
    assert(!r);
    c->call.request = &c->request;
    c->call.payload = &c->iov;
    c->call.payload_parts = c->payload ? 1 : 0;
    c->call.seconds = PATIENCE;
    c->call.done = &a->done;
    link_call_start(&c->call);
}

void asker_call_start(struct asker_call *c, struct asker *a, const struct compute *content,
                      uint32_t latent)
{
    struct shape s = {.latent = latent};
    memset(c, 0, sizeof *c);
    c->iov.iov_len = compute_bytes(&s, content->rows, content->total);
    c->iov.iov_base = c->payload = malloc(c->iov.iov_len);
    compute_write(content, &s, c->payload);
    kapok__compute__init(&c->compute);
    c->compute.layer = content->layer;
    c->compute.bands = content->bands;
    c->compute.rows = content->rows;
    c->compute.n_counts = content->rows;
    c->compute.counts = (uint32_t *)(uintptr_t)content->counts;
    kapok__request__init(&c->request);
    c->request.body_case = KAPOK__REQUEST__BODY_COMPUTE;
    c->request.compute = &c->compute;
    start(c, a);
}

void asker_call_close(struct asker_call *c)
{
    link_call_release(&c->call);
    link_call_close(&c->call);
    free(c->payload);
}

static int wait_for(struct asker_call *c, struct asker *a)
{
    void *done;
    start(c, a);
    int r = queue_take(&a->done, PATIENCE, &done);
    assert(!r && done == &c->call);
    return c->call.error;
}

int asker_hint(struct asker *a, uint32_t layer, const uint32_t *experts, size_t count)
{
    struct asker_call c = {0};
    Kapok__Hint hint = KAPOK__HINT__INIT;
    hint.layer = layer;
    hint.n_experts = count;
    hint.experts = (uint32_t *)(uintptr_t)experts;
    kapok__request__init(&c.request);
    c.request.body_case = KAPOK__REQUEST__BODY_HINT;
    c.request.hint = &hint;
    int r = wait_for(&c, a);
    asker_call_close(&c);
    return r;
}

double asker_counter(struct asker *a, const char *name)
{
    struct asker_call c = {0};
    Kapok__Stats stats = KAPOK__STATS__INIT;
    double value = -1;
    kapok__request__init(&c.request);
    c.request.body_case = KAPOK__REQUEST__BODY_STATS;
    c.request.stats = &stats;
    if (!wait_for(&c, a)) {
        const Kapok__StatsReply *s = c.call.reply.reply->stats;
        for (size_t i = 0; i < s->n_counters; i++)
            if (!strcmp(s->counters[i]->name, name))
                value = s->counters[i]->value;
    }
    asker_call_close(&c);
    return value;
}
