/* Made-up expertds: see the header. */
#include "tests/trunk/fake_expertd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/tile_hello.h"

static int64_t tile_sum(uint32_t expert, uint32_t band, float z, float weight)
{
    return (int64_t)(1 + expert * 64 + band) * (int64_t)lrintf(z * 16) +
           (int64_t)lrintf(weight * 1024);
}

int64_t fake_sum(const struct shape *s, uint32_t expert, float z, float weight)
{
    int64_t sum = 0;
    for (uint32_t band = 0; band < s->bands; band++)
        sum += tile_sum(expert, band, z, weight);
    return sum;
}

static void answer_hello(struct fake *f, struct link_request *q)
{
    struct tile_hello boxes;
    Kapok__HelloReply hello = KAPOK__HELLO_REPLY__INIT;
    Kapok__Reply reply = KAPOK__REPLY__INIT;
    const struct shape *s = &f->checkpoint->shape;
    tile_hello_write(&boxes, &f->tiles, &hello);
    hello.role = (char *)"expertd";
    hello.instance = (uint64_t)(uintptr_t)f->server;
    hello.payload_most = compute_bytes(s, f->rows_most, (size_t)f->rows_most * s->chosen);
    reply.body_case = KAPOK__REPLY__BODY_HELLO;
    reply.hello = &hello;
    link_server_reply(q, &reply, NULL, 0);
}

/* Is it asked only for what it holds? */
static void check_tiles(const struct fake *f, const struct compute *c)
{
    for (size_t i = 0; i < c->total; i++)
        assert_int_equal(c->bands & ~tile_set_bands(&f->tiles, c->layer, c->experts[i]), 0);
}

static void add_expert(const struct shape *s, const struct compute *c, size_t at, size_t row,
                       int64_t *sum)
{
    for (uint32_t band = 0; band < s->bands; band++)
        for (size_t j = 0; c->bands >> band & 1 && j < s->latent; j++)
            sum[row * s->latent + j] +=
                tile_sum(c->experts[at], band, c->z[row * s->latent + j], c->weights[at]);
}

static void answer_compute(struct fake *f, struct link_request *q)
{
    const struct shape *s = &f->checkpoint->shape;
    struct compute c;
    const char *why;
    assert_int_equal(compute_open(&c, &q->msg, s, &why), 0);
    assert_true(c.rows <= f->rows_most);
    if (c.rows > f->rows_seen)
        f->rows_seen = c.rows;
    int64_t *sum = calloc(c.rows * s->latent, sizeof *sum);
    check_tiles(f, &c);
    for (size_t t = 0, at = 0; t < c.rows; t++)
        for (uint32_t i = 0; i < c.counts[t]; i++, at++)
            add_expert(s, &c, at, t, sum);
    Kapok__ComputeReply body = KAPOK__COMPUTE_REPLY__INIT;
    Kapok__Reply reply = KAPOK__REPLY__INIT;
    struct iovec payload = {sum, c.rows * s->latent * sizeof *sum};
    body.bytes_read = 100;
    reply.body_case = KAPOK__REPLY__BODY_COMPUTE;
    reply.compute = &body;
    link_server_reply(q, &reply, &payload, 1);
    free(sum);
}

static void take_compute(struct fake *f, struct link_request *q)
{
    f->computes++;
    if (f->mute)
        f->held[f->helds++ % 64] = q;
    else if (f->error)
        link_server_refuse(q, f->error, "layer %u: made up", q->msg.request->compute->layer);
    else
        answer_compute(f, q);
}

static void run(void *context)
{
    struct fake *f = context;
    Kapok__Reply empty = KAPOK__REPLY__INIT;
    void *item;
    while (!queue_take(&f->incoming, -1, &item)) {
        struct link_request *q = item;
        if (f->deaf)
            continue;
        if (q->msg.request->body_case == KAPOK__REQUEST__BODY_HELLO) {
            answer_hello(f, q);
        } else if (q->msg.request->body_case == KAPOK__REQUEST__BODY_HINT) {
            f->hints++;
            link_server_reply(q, &empty, NULL, 0);
        } else {
            take_compute(f, q);
        }
    }
}

void fake_start(struct fake *f, const struct checkpoint *c, const char *bands)
{
    struct problems p;
    problems_init(&p);
    f->checkpoint = c;
    f->rows_most = f->rows_most ? f->rows_most : 64;
    f->error = 0;
    f->mute = f->deaf = false;
    f->helds = 0;
    assert_int_equal(tile_set_parse(&f->tiles, &c->shape, NULL, NULL, bands, &p), 0);
    assert_int_equal(queue_open(&f->incoming, 64), 0);
    struct link_server_options o = {.address = *f->address ? f->address : "tcp://127.0.0.1:0",
                                    .payload_most = 1 << 24,
                                    .requests = 64,
                                    .incoming = &f->incoming};
    memcpy(o.model, c->digest, sizeof o.model);
    if (link_server_open(&f->server, &o, &p))
        fail_msg("%s", p.text);
    snprintf(f->address, sizeof f->address, "%s", link_server_address(f->server));
    assert_int_equal(thread_start(&f->thread, "fake", run, f), 0);
}

void fake_stop(struct fake *f)
{
    if (!f->server)
        return;
    queue_close(&f->incoming);
    thread_join(&f->thread);
    link_server_close(f->server);
    f->server = NULL;
    queue_free(&f->incoming);
}
