/*
 * A step: everything about the rows is checked before anything changes; then the commits are
 * made; then the rows run. Nothing but the commits is left of a step that does not finish.
 */
#include "trunk/runner_step.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "trunk/head.h"
#include "trunk/kda.h"
#include "trunk/layer.h"

/* What one step works on. */
struct step {
    struct runner *runner;
    struct step_rows rows;
    char *why;
    size_t size;
};

static int refuse(struct step *s, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int refuse(struct step *s, int error, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(s->why, s->size, format, values);
    va_end(values);
    return error;
}

/* ---- checks ------------------------------------------------------------------------------ */

static int read_message(struct step *s, const struct msg *m)
{
    const struct sizing *z = s->runner->sizing;
    const struct step_rows_limits limits = {z->states.layer_first, z->states.layer_end,
                                            z->rows_most, z->logits_most};
    const char *why;
    int error = step_rows_open(&s->rows, m, s->runner->shape, &limits, &why);
    return error ? refuse(s, error, "%s", why) : 0;
}

static int check_commits(struct step *s)
{
    struct states *ss = s->runner->pass.states;
    const struct step_rows *q = &s->rows;
    for (uint32_t i = 0; i < q->commits; i++) {
        const struct state *st = states_find(ss, q->commit_sequence[i]);
        if (!st)
            return refuse(s, -ENOENT, "no such sequence: %llu",
                          (unsigned long long)q->commit_sequence[i]);
        for (uint32_t j = 0; j < i; j++)
            if (q->commit_sequence[j] == q->commit_sequence[i])
                return refuse(s, -EBADMSG, "sequence %llu is committed twice in one step",
                              (unsigned long long)st->id);
        int error = states_check_cut(ss, st, q->commit_length[i], s->why, s->size);
        if (error)
            return error;
    }
    return 0;
}

/* Where the rows of this sequence have to begin, after the commits. */
static uint32_t begins_at(const struct step *s, const struct state *st)
{
    for (uint32_t i = 0; i < s->rows.commits; i++)
        if (s->rows.commit_sequence[i] == st->id)
            return s->rows.commit_length[i];
    return st->committed;
}

/* The run of this state, a new one when it has none yet. */
static uint32_t find_run(struct step *s, struct state *st)
{
    struct batch *b = &s->runner->pass.batch;
    for (uint32_t i = 0; i < b->runs; i++)
        if (b->run[i].state == st)
            return i;
    b->run[b->runs] = (struct batch_run){.state = st, .position = begins_at(s, st)};
    return b->runs++;
}

static int add_row(struct step *s, uint32_t t)
{
    const struct step_rows *q = &s->rows;
    struct state *st = states_find(s->runner->pass.states, q->sequence[t]);
    if (!st)
        return refuse(s, -ENOENT, "no such sequence: %llu", (unsigned long long)q->sequence[t]);
    uint32_t i = find_run(s, st);
    struct batch_run *run = &s->runner->pass.batch.run[i];
    uint32_t expected = run->position + run->rows++;
    s->runner->run_of[t] = i;
    if (q->position[t] != expected)
        return refuse(s, -EINVAL, "row %u: sequence %llu continues at position %u, not at %u",
                      t, (unsigned long long)st->id, expected, q->position[t]);
    if (expected >= st->room)
        return refuse(s, -ENOSPC, "row %u: sequence %llu was opened for %u positions", t,
                      (unsigned long long)st->id, st->room);
    return 0;
}

/* Fills the batch: which rows belong together, and where each one goes. */
static int make_batch(struct step *s)
{
    struct runner *r = s->runner;
    struct batch *b = &r->pass.batch;
    b->rows = s->rows.rows;
    b->runs = 0;
    for (uint32_t t = 0; t < b->rows; t++) {
        int error = add_row(s, t);
        if (error)
            return error;
    }
    for (uint32_t i = 0, first = 0; i < b->runs; first += b->run[i++].rows)
        b->run[i].first = first;
    for (uint32_t i = 0; i < b->runs; i++)
        b->run[i].rows = 0;
    for (uint32_t t = 0; t < b->rows; t++) {
        struct batch_run *run = &b->run[r->run_of[t]];
        r->place[t] = run->first + run->rows++;
    }
    return 0;
}

/* ---- commits ----------------------------------------------------------------------------- */

static void cut(struct step *s, struct state *st, uint32_t length)
{
    uint32_t accepted = length - st->committed;
    if (accepted && accepted < st->pending)
        kda_replay(&s->runner->pass, st, accepted);
    states_cut(st, accepted);
}

/* Rows that were pending in a sequence that goes on without them being committed are
 * forgotten. */
static void make_commits(struct step *s)
{
    struct pass *p = &s->runner->pass;
    for (uint32_t i = 0; i < s->rows.commits; i++)
        cut(s, states_find(p->states, s->rows.commit_sequence[i]), s->rows.commit_length[i]);
    for (uint32_t i = 0; i < p->batch.runs; i++)
        states_cut(p->batch.run[i].state, 0);
}

/* ---- rows in, rows out ------------------------------------------------------------------- */

static void embed_input(struct step *s)
{
    struct runner *r = s->runner;
    struct pass *p = &r->pass;
    for (uint32_t t = 0; t < s->rows.rows; t++)
        r->token[r->place[t]] = s->rows.token[t];
    p->sources = 1;
    int error = embed_rows(r->embed, r->token, s->rows.rows, pass_running(p));
    if (error)
        pass_fail(p, error, "%s", r->embed->error);
}

static void copy_input(struct step *s)
{
    struct pass *p = &s->runner->pass;
    size_t n = p->shape->hidden;
    p->sources = s->rows.sources;
    for (uint32_t t = 0; t < s->rows.rows; t++)
        for (uint32_t i = 0; i < p->sources; i++)
            memcpy(pass_source(p, i) + s->runner->place[t] * n,
                   s->rows.input + ((size_t)t * p->sources + i) * n, n * sizeof(float));
}

static void copy_output(struct step *s)
{
    struct pass *p = &s->runner->pass;
    size_t n = p->shape->hidden;
    for (uint32_t t = 0; !p->error && t < s->rows.rows; t++)
        for (uint32_t i = 0; i < p->sources; i++)
            memcpy(s->runner->output + ((size_t)t * p->sources + i) * n,
                   pass_source(p, i) + s->runner->place[t] * n, n * sizeof(float));
}

static void make_logits(struct step *s)
{
    struct runner *r = s->runner;
    uint32_t wanted = 0;
    for (uint32_t t = 0; t < s->rows.rows; t++)
        if (s->rows.logits[t])
            r->wanted[wanted++] = r->place[t];
    head_run(&r->pass, r->wanted, wanted, r->output);
}

/* ---- the layers -------------------------------------------------------------------------- */

static void run_layers(struct step *s)
{
    struct runner *r = s->runner;
    struct pass *p = &r->pass;
    const struct states_options *o = &r->sizing->states;
    bool is_last = o->layer_end == r->shape->layers;
    weights_begin(p->weights, s->rows.wanted > 0);
    if (o->layer_first == 0)
        embed_input(s);
    else
        copy_input(s);
    for (uint32_t layer = o->layer_first; !p->error && layer < o->layer_end; layer++) {
        atomic_store(&r->layer, layer);
        if (runner_wants(r))
            layer_run(p, layer);
        else
            pass_fail(p, -ECANCELED, "the step was cancelled");
    }
    if (!is_last)
        copy_output(s);
    else if (s->rows.wanted)
        make_logits(s);
    if (p->error)
        weights_rewind(p->weights);
}

static int run_rows(struct step *s)
{
    struct pass *p = &s->runner->pass;
    p->error = 0;
    p->scratch_used = 0;
    p->pushed = false;
    run_layers(s);
    if (p->error)
        return refuse(s, p->error, "%s", p->reason);
    for (uint32_t i = 0; i < p->batch.runs; i++)
        p->batch.run[i].state->pending = p->batch.run[i].rows;
    return 0;
}

/* ---- the whole --------------------------------------------------------------------------- */

struct counts {
    double started;
    struct weights_counters weights;
    struct experts_counters experts;
    uint64_t embed;
};

static struct counts count_now(struct runner *r)
{
    struct counts c = {.started = thread_now()};
    weights_counters(r->pass.weights, &c.weights);
    experts_counters(r->experts, &c.experts);
    c.embed = r->embed ? r->embed->bytes_read : 0;
    return c;
}

static void fill_answer(struct step *s, const struct counts *before)
{
    struct runner *r = s->runner;
    struct counts now = count_now(r);
    kapok__step_reply__init(&r->answer);
    r->answer.trunk_bytes =
        now.weights.bytes_read - before->weights.bytes_read + now.embed - before->embed;
    r->answer.expert_bytes = now.experts.bytes_read - before->experts.bytes_read;
    r->answer.expert_hits = now.experts.tiles_hit - before->experts.tiles_hit;
    r->answer.us_total = (uint64_t)((now.started - before->started) * 1e6);
    r->answer.us_weights = now.weights.us_waited - before->weights.us_waited;
    r->answer.us_experts = now.experts.us_waited - before->experts.us_waited;
    r->answer_bytes = step_rows_reply_bytes(r->shape, r->sizing->states.layer_end, s->rows.rows,
                                            s->rows.wanted);
}

int runner_step_run(struct runner *r, const struct msg *m, char *why, size_t size)
{
    struct step s = {.runner = r, .why = why, .size = size};
    struct counts before = count_now(r);
    int error = read_message(&s, m);
    atomic_store(&r->layer, r->sizing->states.layer_first);
    atomic_store(&r->rows, error ? 0 : s.rows.rows);
    if (!error)
        error = check_commits(&s);
    if (!error)
        error = make_batch(&s);
    if (!error && s.rows.rows && experts_await(r->experts))
        error = refuse(&s, -ECANCELED, "the step was cancelled while it waited for expertds");
    if (error)
        return error;
    make_commits(&s);
    r->kept = false; /* the output is written over */
    if (s.rows.rows)
        error = run_rows(&s);
    if (!error)
        fill_answer(&s, &before);
    return error;
}
