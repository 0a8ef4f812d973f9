/*
 * Running a step: its rows through all stages, again from the start when a stage lost its
 * state.
 */
#include <errno.h>
#include <string.h>

#include "base/thread.h"
#include "coordinator/hub_private.h"

#define RUN_ATTEMPTS 16 /* a stage that forgets so often in one step is broken */

void hub_batch_begin(struct hub_batch *b)
{
    b->rows = b->wanted = b->commits = 0;
}

void hub_batch_commit(struct hub_batch *b, struct sequence *s, uint32_t length)
{
    b->committing[b->commits] = s;
    b->commit_sequence[b->commits] = s->id;
    b->commit_length[b->commits++] = length;
}

void hub_batch_row(struct hub_batch *b, struct sequence *s, uint32_t position, uint32_t token,
                   bool logits)
{
    size_t i = b->rows++;

    b->of[i] = s;
    b->sequence[i] = s->id;
    b->position[i] = position;
    b->token[i] = token;
    b->logits[i] = logits;
    b->wanted += logits;
    if (i == 0 || b->of[i - 1] != s)
        hub_batch_commit(b, s, position);
}

void hub_begin(struct hub *h)
{
    hub_batch_begin(&h->main);
}

void hub_row(struct hub *h, struct sequence *s, uint32_t position, uint32_t token, bool logits)
{
    hub_batch_row(&h->main, s, position, token, logits);
}

size_t hub_rows(const struct hub *h)
{
    return h->main.rows;
}

static void step_body(const struct hub_batch *b, uint64_t number, Kapok__Step *ret_step)
{
    kapok__step__init(ret_step);
    ret_step->number = number;
    ret_step->n_sequence = ret_step->n_position = b->rows;
    ret_step->n_token = ret_step->n_logits = b->rows;
    ret_step->sequence = (uint64_t *)b->sequence;
    ret_step->position = (uint32_t *)b->position;
    ret_step->token = (uint32_t *)b->token;
    ret_step->logits = (protobuf_c_boolean *)b->logits;
    ret_step->n_commit_sequence = ret_step->n_commit_length = b->commits;
    ret_step->commit_sequence = (uint64_t *)b->commit_sequence;
    ret_step->commit_length = (uint32_t *)b->commit_length;
}

/* Bytes the payload of a stage's answer must have. */
static size_t answer_bytes(struct hub *h, size_t stage, const struct hub_batch *b)
{
    const struct shape *shape = h->options.shape;
    const Kapok__HelloReply *hello;
    uint32_t layer = 0;

    if (stage + 1 == h->options.stages)
        return b->wanted * shape->vocab * sizeof(float);
    hello = link_hello_get(h->stage[stage].link);
    if (hello != NULL && hello->trunk != NULL)
        layer = hello->trunk->layer_end;
    link_hello_put(h->stage[stage].link);
    return b->rows * (shape_snapshots(shape, layer) + 1) * shape->hidden * sizeof(float);
}

/* Is it an answer to a step, of the right size? Adds up its counters. */
static int check_answer(struct hub *h, size_t stage, const struct hub_batch *b,
                        struct hub_result *r)
{
    const struct msg *m = &h->stage[stage].call.reply;
    size_t expected = answer_bytes(h, stage, b);

    if (m->reply->body_case != KAPOK__REPLY__BODY_STEP)
        return hub_fail(h, -EPROTO, "%s did not answer a step with a step",
                        link_address(h->stage[stage].link));
    if (m->payload_bytes != expected)
        return hub_fail(h, -EPROTO, "%s answered a step with %zu bytes, expected %zu",
                        link_address(h->stage[stage].link), m->payload_bytes, expected);
    r->trunk_bytes += m->reply->step->trunk_bytes;
    r->expert_bytes += m->reply->step->expert_bytes;
    r->expert_hits += m->reply->step->expert_hits;
    r->logits = (const float *)m->payload;
    return 0;
}

int hub_chain(struct hub *h, struct hub_batch *b, struct hub_result *ret_result)
{
    Kapok__Request request = KAPOK__REQUEST__INIT;
    struct hub_result r = {0};
    Kapok__Step body;
    double started = thread_now();

    step_body(b, ++h->number, &body);
    request.body_case = KAPOK__REQUEST__BODY_STEP;
    request.step = &body;
    for (size_t i = 0; i < h->options.stages; i++) {
        const struct msg *before = i > 0 ? &h->stage[i - 1].call.reply : NULL;
        struct iovec payload;
        int error;

        if (before != NULL)
            payload = (struct iovec){(void *)before->payload, before->payload_bytes};
        error = hub_call(h, i, &request, before != NULL ? &payload : NULL, h->number);
        if (i > 0)
            hub_let_go(&h->stage[i - 1]);
        if (error == 0)
            error = check_answer(h, i, b, &r);
        if (error != 0)
            return error;
    }
    for (size_t i = 0; i < b->commits; i++)
        b->committing[i]->committed = b->commit_length[i];
    r.seconds = thread_now() - started;
    *ret_result = r;
    return 0;
}

/* Brings back every sequence of the step that a stage has lost. */
static int replay_lost(struct hub *h)
{
    for (size_t i = 0; i < h->main.commits; i++) {
        struct sequence *s = h->main.committing[i];
        int error = hub_sequence_stale(h, s) ? hub_sequence_replay(h, s) : 0;

        if (error != 0)
            return error;
    }
    return 0;
}

int hub_sequence_commit(struct hub *h, struct sequence *s)
{
    struct hub_result result;
    int error = hub_settle(h);

    if (error != 0)
        return error;
    if (hub_sequence_stale(h, s))
        return hub_fail(h, -ESTALE, "the sequence is lost");
    if (s->committed == s->standing)
        return 0;
    hub_batch_begin(&h->replay);
    hub_batch_commit(&h->replay, s, s->standing);
    error = hub_chain(h, &h->replay, &result);
    if (error == -ESTALE)
        hub_new_epoch(h);
    return error;
}

static void count_run(struct hub *h, int error)
{
    pthread_mutex_lock(&h->lock);
    if (error == 0) {
        h->counts.steps++;
        h->counts.rows += h->main.rows;
    } else if (error == -ECANCELED) {
        h->counts.cancelled++;
    }
    pthread_mutex_unlock(&h->lock);
}

int hub_run(struct hub *h, struct hub_result *ret_result)
{
    int error = -ESTALE;

    for (unsigned attempt = 0; attempt < RUN_ATTEMPTS && error == -ESTALE; attempt++) {
        error = hub_settle(h);
        if (error == 0)
            error = replay_lost(h);
        if (error == 0)
            error = hub_chain(h, &h->main, ret_result);
        if (error == -ESTALE)
            hub_new_epoch(h);
    }
    if (error == -ESTALE)
        error = hub_fail(h, -EIO, "a trunk stage keeps losing its sequences");
    count_run(h, error);
    return error;
}
