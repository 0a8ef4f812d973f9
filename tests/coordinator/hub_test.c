/*
 * The hub against fake stages: the right logits through one and two stages, through a stage
 * that is restarted in between, through drafts that are forgotten; cancellation; closing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "coordinator/hub.h"
#include "tests/coordinator/fake_trunk.h"

static const uint8_t secret[SECRET_BYTES] = {1, 2, 3}, model[CHECKPOINT_DIGEST] = {9};

struct fixture {
    struct shape shape;
    struct fake_trunk *trunk[2];
    struct fake_trunk_options options[2];
    char address[2][64];
    size_t stages;
    struct links *links;
    struct link *link[2];
    struct hub *hub;
    atomic_bool wanted;
};

static bool is_wanted(void *context)
{
    return atomic_load(&((struct fixture *)context)->wanted);
}

static void start_trunk(struct fixture *f, size_t i)
{
    f->trunk[i] = fake_trunk_start(&f->options[i]);
    snprintf(f->address[i], sizeof f->address[i], "%s", fake_trunk_address(f->trunk[i]));
    f->options[i].address = f->address[i]; /* the same when it is started again */
}

static void open_links(struct fixture *f)
{
    struct links_options options = {.role = "coordinator", .payload_most = 64 << 20};
    struct problems p;

    problems_init(&p);
    memcpy(options.secret, secret, sizeof options.secret);
    memcpy(options.model, model, sizeof options.model);
    assert_int_equal(links_open(&f->links, &options), 0);
    for (size_t i = 0; i < f->stages; i++)
        assert_int_equal(links_add(f->links, f->address[i], &f->link[i], &p), 0);
    assert_int_equal(links_start(f->links), 0);
}

static void open_hub(struct fixture *f)
{
    struct hub_options options = {.links = f->links,
                                  .stage = f->link,
                                  .stages = f->stages,
                                  .shape = &f->shape,
                                  .wanted = is_wanted,
                                  .context = f};

    assert_int_equal(hub_open(&f->hub, &options), 0);
}

static void setup(struct fixture *f, size_t stages)
{
    memset(f, 0, sizeof *f);
    fake_trunk_shape(&f->shape);
    f->stages = stages;
    atomic_store(&f->wanted, true);
    for (size_t i = 0; i < stages; i++) {
        f->options[i] = (struct fake_trunk_options){
            .address = "tcp://127.0.0.1:0",
            .secret = secret,
            .model = model,
            .shape = &f->shape,
            .layer_first = (uint32_t)(i * 3),
            .layer_end = i + 1 == stages ? f->shape.layers : 3,
            .sequences = 4,
            .rows = 16,
            .logits = 8,
            .positions = 400,
        };
        start_trunk(f, i);
    }
    open_links(f);
    open_hub(f);
}

static void teardown(struct fixture *f)
{
    hub_close(f->hub);
    links_close(f->links);
    for (size_t i = 0; i < f->stages; i++)
        if (f->trunk[i] != NULL)
            fake_trunk_stop(f->trunk[i]);
}

static void expect_logits(struct fixture *f, const struct sequence *s, uint32_t count,
                          const float *found)
{
    float expected[256];

    fake_trunk_logits(&f->shape, s->token, count, false, expected);
    assert_memory_equal(expected, found, f->shape.vocab * sizeof *found);
}

/* Runs what is pending, checks the last row's logits, adds `next`. */
static void advance(struct fixture *f, struct sequence *s, uint32_t next)
{
    struct hub_result r;

    hub_begin(f->hub);
    for (uint32_t i = s->standing; i < s->count; i++)
        hub_row(f->hub, s, i, s->token[i], i + 1 == s->count);
    assert_int_equal(hub_run(f->hub, &r), 0);
    expect_logits(f, s, s->count, r.logits);
    s->standing = s->count;
    s->token[s->count++] = next;
}

static struct sequence begin(struct fixture *f, uint32_t *tokens)
{
    struct sequence s = {.token = tokens, .count = 5, .room = 90};

    for (uint32_t i = 0; i < s.count; i++)
        tokens[i] = 10 + i;
    assert_int_equal(hub_sequence_open(f->hub, &s), 0);
    return s;
}

static void plain(size_t stages)
{
    uint32_t tokens[100];
    struct fixture f;
    struct sequence s;

    setup(&f, stages);
    s = begin(&f, tokens);
    for (uint32_t i = 0; i < 6; i++)
        advance(&f, &s, 30 + i);
    assert_int_equal(fake_trunk_open(f.trunk[0]), 1);
    hub_sequence_close(f.hub, &s);
    s = begin(&f, tokens);
    assert_int_equal(fake_trunk_open(f.trunk[stages - 1]), 1);
    teardown(&f);
}

static void one_stage(void **state)
{
    plain(1);
}

static void two_stages(void **state)
{
    plain(2);
}

static void restarted_stage(void **state)
{
    uint32_t tokens[2][100];
    struct hub_counts counts;
    struct fixture f;
    struct sequence a, b;

    for (size_t which = 0; which < 2; which++) {
        setup(&f, 2);
        a = begin(&f, tokens[0]);
        b = begin(&f, tokens[1]);
        for (uint32_t i = 0; i < 30; i++)
            advance(&f, &a, 40 + i % 7);
        advance(&f, &b, 5);
        fake_trunk_stop(f.trunk[which]);
        start_trunk(&f, which);
        advance(&f, &a, 6);
        advance(&f, &a, 7);
        advance(&f, &b, 8);
        hub_counts(f.hub, &counts);
        assert_int_equal(counts.replayed, 2);
        teardown(&f);
    }
}

static void drafts_forgotten(void **state)
{
    uint32_t tokens[100];
    struct hub_result r;
    struct fixture f;
    struct sequence s;

    setup(&f, 2);
    s = begin(&f, tokens);
    advance(&f, &s, 20);
    hub_begin(f.hub);
    hub_row(f.hub, &s, s.standing, 20, true);
    hub_row(f.hub, &s, s.standing + 1, 21, true);
    hub_row(f.hub, &s, s.standing + 2, 22, true);
    assert_int_equal(hub_run(f.hub, &r), 0);
    expect_logits(&f, &s, s.count, r.logits);
    s.token[s.count++] = 21; /* the first draft stands, the second does not */
    expect_logits(&f, &s, s.count, r.logits + f.shape.vocab);
    s.standing += 2;
    s.token[s.count++] = 99;
    advance(&f, &s, 1);
    advance(&f, &s, 2);
    teardown(&f);
}

static void forked(void **state)
{
    uint32_t tokens[2][100];
    struct fixture f;
    struct sequence a, b;

    setup(&f, 2);
    a = begin(&f, tokens[0]);
    advance(&f, &a, 20);
    advance(&f, &a, 21);
    assert_int_equal(a.committed, 5);
    memcpy(tokens[1], tokens[0], sizeof tokens[0]);
    b = (struct sequence){.token = tokens[1], .count = 6, .room = 90};
    b.token[5] = 77;
    assert_int_equal(hub_sequence_fork(f.hub, &a, &b), 0);
    assert_int_equal(b.standing, 5);
    advance(&f, &b, 3);
    advance(&f, &a, 4);
    fake_trunk_stop(f.trunk[1]);
    start_trunk(&f, 1);
    advance(&f, &a, 4);
    hub_sequence_close(f.hub, &b);
    b = (struct sequence){.token = tokens[1], .count = 6, .room = 90};
    assert_int_equal(hub_sequence_fork(f.hub, &b, &b), -ESTALE);
    teardown(&f);
}

static void no_room(void **state)
{
    uint32_t tokens[5][100];
    struct sequence s[5];
    struct fixture f;

    setup(&f, 1);
    for (size_t i = 0; i < 4; i++)
        s[i] = begin(&f, tokens[i]);
    s[4] = (struct sequence){.token = tokens[4], .count = 5, .room = 90};
    assert_int_equal(hub_sequence_open(f.hub, &s[4]), -ENOSPC);
    hub_sequence_close(f.hub, &s[1]);
    s[4].room = 300; /* four times 90 of 400 were taken */
    assert_int_equal(hub_sequence_open(f.hub, &s[4]), -ENOSPC);
    s[4].room = 90;
    assert_int_equal(hub_sequence_open(f.hub, &s[4]), 0);
    advance(&f, &s[0], 3);
    teardown(&f);
}

static void unwant_soon(void *context)
{
    struct fixture *f = context;
    struct timespec t = {0, 200000000};

    nanosleep(&t, NULL);
    atomic_store(&f->wanted, false);
}

static void cancelled(void **state)
{
    uint32_t tokens[100];
    struct thread thread;
    struct hub_result r;
    struct fixture f;
    struct sequence s;
    double started;

    setup(&f, 2);
    s = begin(&f, tokens);
    advance(&f, &s, 20);
    fake_trunk_slow(f.trunk[1], 2.0); /* three layers, six seconds */
    thread_start(&thread, "unwant", unwant_soon, &f);
    hub_begin(f.hub);
    hub_row(f.hub, &s, s.standing, 20, true);
    started = thread_now();
    assert_int_equal(hub_run(f.hub, &r), -ECANCELED);
    assert_true(thread_now() - started < 4.5);
    thread_join(&thread);
    assert_int_equal(fake_trunk_cancelled(f.trunk[1]), 1);
    atomic_store(&f.wanted, true);
    fake_trunk_slow(f.trunk[1], 0);
    advance(&f, &s, 21);
    teardown(&f);
}

static void away(void **state)
{
    uint32_t tokens[100];
    struct hub_result r;
    struct fixture f;
    struct sequence s;
    char why[512];

    setup(&f, 2);
    s = begin(&f, tokens);
    advance(&f, &s, 20);
    fake_trunk_stop(f.trunk[1]);
    f.trunk[1] = NULL;
    hub_begin(f.hub);
    hub_row(f.hub, &s, s.standing, 20, true);
    atomic_store(&f.wanted, false);
    assert_int_equal(hub_run(f.hub, &r), -ECANCELED);
    assert_true(hub_missing(f.hub, why, sizeof why));
    assert_non_null(strstr(why, f.address[1]));
    teardown(&f);
}

/* A coordinator that starts anew closes what its predecessor left open. */
static void inherited(void **state)
{
    uint32_t tokens[3][100];
    struct sequence s;
    struct fixture f;

    setup(&f, 1);
    for (size_t i = 0; i < 3; i++)
        s = begin(&f, tokens[i]);
    hub_close(f.hub);
    open_hub(&f);
    s = begin(&f, tokens[0]);
    assert_int_equal(fake_trunk_open(f.trunk[0]), 1);
    advance(&f, &s, 3);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_stage),       cmocka_unit_test(two_stages),
        cmocka_unit_test(restarted_stage), cmocka_unit_test(drafts_forgotten),
        cmocka_unit_test(forked),          cmocka_unit_test(no_room),
        cmocka_unit_test(cancelled),       cmocka_unit_test(away),
        cmocka_unit_test(inherited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
