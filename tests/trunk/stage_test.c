/*
 * A stage as a process would be, asked over its link: the first layer of a small checkpoint,
 * which needs no experts. What is answered at once, what is kept, what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "proto/link.h"
#include "proto/step_rows.h"
#include "trunk/stage.h"

#define SEQUENCE 5

static const char *folder;
static char secret[] = "/tmp/kapok-stage-XXXXXX";
static struct checkpoint checkpoint;

static const struct stage_options usual = {
    .listen = "tcp://127.0.0.1:0",
    .layers = "0-0",
    .memory = 64 << 20,
    .threads = 1,
    .deadline = 10,
    .buffered = true,
};

struct client {
    struct stage *stage;
    struct links *links;
    struct link *link;
    struct link_call call[2];
    struct queue done;
};

static struct client *client_open(void)
{
    struct client *c = calloc(1, sizeof *c);
    struct problems p;
    struct stage_options o = usual;
    problems_init(&p);
    o.checkpoint = folder;
    o.secret = secret;
    if (stage_open(&c->stage, &o, &p) || stage_start(c->stage, &p))
        fail_msg("%s", p.text);
    struct links_options lo = {.role = "coordinator", .payload_most = 1 << 24};
    memcpy(lo.model, checkpoint.digest, sizeof lo.model);
    assert_int_equal(secret_load(secret, lo.secret, &p), 0);
    assert_int_equal(links_open(&c->links, &lo), 0);
    assert_int_equal(links_add(c->links, stage_address(c->stage), &c->link, &p), 0);
    assert_int_equal(queue_open(&c->done, 2), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(link_call_open(&c->call[i], c->link), 0);
    assert_int_equal(links_start(c->links), 0);
    return c;
}

static void client_close(struct client *c)
{
    for (int i = 0; i < 2; i++)
        link_call_close(&c->call[i]);
    links_close(c->links);
    queue_free(&c->done);
    stage_close(c->stage);
    free(c);
}

/* Asks and waits; the reply stays in call[which] until it asks again. */
static int ask(struct client *c, int which, Kapok__Request *q)
{
    struct link_call *call = &c->call[which];
    void *ended;
    link_call_release(call);
    call->request = q;
    call->seconds = 30;
    call->done = &c->done;
    link_call_start(call);
    assert_int_equal(queue_take(&c->done, 30, &ended), 0);
    return call->error;
}

static int ask_open(struct client *c, uint64_t sequence, uint32_t positions)
{
    Kapok__Request q = KAPOK__REQUEST__INIT;
    Kapok__Open body = KAPOK__OPEN__INIT;
    q.body_case = KAPOK__REQUEST__BODY_OPEN;
    q.open = &body;
    body.sequence = sequence;
    body.positions = positions;
    return ask(c, 0, &q);
}

/* One row at this position, all before it committed. */
static int ask_step(struct client *c, int which, uint64_t number, uint32_t position)
{
    Kapok__Request q = KAPOK__REQUEST__INIT;
    Kapok__Step body = KAPOK__STEP__INIT;
    uint64_t sequence = SEQUENCE;
    uint32_t token = 17 + position;
    protobuf_c_boolean logits = 1;
    q.body_case = KAPOK__REQUEST__BODY_STEP;
    q.step = &body;
    body.number = number;
    body.n_sequence = body.n_position = body.n_token = body.n_logits = 1;
    body.sequence = &sequence;
    body.position = &position;
    body.token = &token;
    body.logits = &logits;
    body.n_commit_sequence = body.n_commit_length = 1;
    body.commit_sequence = &sequence;
    body.commit_length = &position;
    return ask(c, which, &q);
}

static double counter(struct client *c, const char *name)
{
    Kapok__Request q = KAPOK__REQUEST__INIT;
    Kapok__Stats body = KAPOK__STATS__INIT;
    q.body_case = KAPOK__REQUEST__BODY_STATS;
    q.stats = &body;
    assert_int_equal(ask(c, 0, &q), 0);
    const Kapok__StatsReply *r = c->call[0].reply.reply->stats;
    assert_string_equal(r->now, "idle");
    assert_true(r->n_areas > 5);
    for (size_t i = 0; i < r->n_counters; i++)
        if (!strcmp(r->counters[i]->name, name))
            return r->counters[i]->value;
    fail_msg("no counter %s", name);
    return 0;
}

/* ---- tests ------------------------------------------------------------------------------- */

static void hello_says_what_it_serves(void **state)
{
    struct client *c = client_open();
    Kapok__Request q = KAPOK__REQUEST__INIT;
    Kapok__Hello body = KAPOK__HELLO__INIT;
    q.body_case = KAPOK__REQUEST__BODY_HELLO;
    q.hello = &body;
    assert_int_equal(ask(c, 0, &q), 0);
    const Kapok__HelloReply *h = c->call[0].reply.reply->hello;
    assert_string_equal(h->role, "trunk");
    assert_int_equal(h->trunk->layer_first, 0);
    assert_int_equal(h->trunk->layer_end, 1);
    assert_true(h->trunk->ready && h->trunk->tiles_needed == 0);
    assert_true(h->trunk->rows_most > 0 && h->trunk->sequences_most > 0);
    assert_true(h->instance != 0 && h->payload_most > 0);
    client_close(c);
}

static void a_repeated_step_has_the_kept_answer(void **state)
{
    struct client *c = client_open();
    assert_int_equal(ask_open(c, SEQUENCE, 10), 0);
    assert_int_equal(ask_step(c, 0, 100, 0), 0);
    assert_int_equal(ask_step(c, 0, 101, 1), 0);
    assert_int_equal(ask_step(c, 1, 101, 1), 0);
    size_t bytes = step_rows_reply_bytes(&checkpoint.shape, 1, 1, 0);
    assert_int_equal(c->call[0].reply.payload_bytes, bytes);
    assert_int_equal(c->call[1].reply.payload_bytes, bytes);
    assert_memory_equal(c->call[0].reply.payload, c->call[1].reply.payload, bytes);
    assert_true(counter(c, "steps") == 2 && counter(c, "steps_repeated") == 1);
    assert_int_equal(ask_step(c, 1, 102, 1), 0); /* the same rows as another step */
    assert_true(counter(c, "steps") == 3 && counter(c, "rows") == 3);
    client_close(c);
}

static void refusals_have_sentences(void **state)
{
    struct client *c = client_open();
    Kapok__Request q = KAPOK__REQUEST__INIT;
    Kapok__Hint hint = KAPOK__HINT__INIT;
    Kapok__Cancel cancel = KAPOK__CANCEL__INIT;
    q.body_case = KAPOK__REQUEST__BODY_HINT;
    q.hint = &hint;
    assert_int_equal(ask(c, 0, &q), -EBADMSG);
    assert_string_equal(
        c->call[0].reason,
        "a trunk answers Hello, Stats, Cancel, Open, Close, Fork and Step only");
    q.body_case = KAPOK__REQUEST__BODY_CANCEL;
    q.cancel = &cancel;
    assert_int_equal(ask(c, 0, &q), 0); /* of a step that does not run: nothing happens */
    assert_int_equal(ask_step(c, 0, 1, 0), -ENOENT);
    assert_string_equal(c->call[0].reason, "no such sequence: 5");
    assert_int_equal(ask_open(c, SEQUENCE, 1), 0);
    assert_int_equal(ask_step(c, 0, 2, 0), 0);
    assert_int_equal(ask_step(c, 0, 3, 1), -ENOSPC);
    assert_int_equal(ask_open(c, SEQUENCE, 1 << 30), -ENOSPC);
    assert_true(counter(c, "steps_failed") == 2);
    client_close(c);
}

static void expect_refused(const struct stage_options *o, const char *part)
{
    struct stage *s = NULL;
    struct problems p;
    problems_init(&p);
    assert_true(stage_open(&s, o, &p) < 0);
    assert_null(s);
    if (!strstr(p.text, part))
        fail_msg("expected \"%s\" in \"%s\"", part, p.text);
}

static void bad_options_are_refused(void **state)
{
    struct stage_options o = usual;
    const char *off_loopback = "tcp://10.0.0.1:7000";
    o.checkpoint = folder;
    o.secret = secret;
    o.memory = 1 << 20;
    expect_refused(&o, "--memory: 1048576 bytes given, at least ");
    o.memory = usual.memory;
    o.layers = NULL;
    expect_refused(&o, "--expertd is missing: layers 0-8 have experts");
    o.layers = "0,2";
    expect_refused(&o, "--layers 0,2: expected one range without gaps");
    o.layers = "3-99";
    expect_refused(&o, "--layers 3-99: expected a range within 0-8");
    o.layers = "0-1";
    o.expertd = &off_loopback;
    o.expertds = 1;
    expect_refused(&o, "10.0.0.1");
    o.layers = "0-0";
    o.isa = "mmx";
    expect_refused(&o, "--isa: ");
    o.isa = NULL;
    o.sequences = 4000;
    expect_refused(&o, "for 4000 sequences");
    o.secret = "/nonexistent/secret";
    expect_refused(&o, "/nonexistent/secret");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello_says_what_it_serves),
        cmocka_unit_test(a_repeated_step_has_the_kept_answer),
        cmocka_unit_test(refusals_have_sentences),
        cmocka_unit_test(bad_options_are_refused),
    };
    static struct problems problems;
    uint8_t bytes[SECRET_BYTES] = {1, 2, 3};
    problems_init(&problems);
    log_init("stage_test", LOG_ERROR);
    folder = argv[1];
    int fd = mkstemp(secret);
    if (fd < 0 || write(fd, bytes, sizeof bytes) != sizeof bytes || close(fd) ||
        checkpoint_open(&checkpoint, folder, &problems)) {
        fprintf(stderr, "%s\n", problems.text);
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    checkpoint_close(&checkpoint);
    unlink(secret);
    return failed;
}
