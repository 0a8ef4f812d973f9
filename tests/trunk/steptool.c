/*
 * Speaks to trunk stages as a coordinator does, without one: runs a prompt and writes the
 * logits of every position, f32 [positions][vocab], to a file, for comparison with the
 * reference.
 *
 *     steptool --checkpoint DIR --secret FILE --stage ADDRESS [--stage ADDRESS ...]
 *              --ids 3,7,11 [--chunk N] [--draft N] --out FILE
 *
 * --chunk: rows of a step; --draft: so many rows with wrong tokens behind every chunk, which
 * are then not committed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/thread.h"
#include "proto/link.h"
#include "proto/step_rows.h"

#define STAGES   16
#define ROWS     4096
#define SEQUENCE 1
#define PATIENCE 60.0 /* seconds until a stage must be ready */

static const char *checkpoint_folder, *secret_file, *ids, *out_file;
static struct option_list stages;
static uint64_t chunk, draft;

static const struct option table[] = {
    {"checkpoint", OPTION_TEXT, &checkpoint_folder, NULL, "DIR", "the checkpoint"},
    {"secret", OPTION_TEXT, &secret_file, NULL, "FILE", "the deployment's secret"},
    {"stage", OPTION_LIST, &stages, NULL, "ADDRESS", "a trunk stage, in order"},
    {"ids", OPTION_TEXT, &ids, NULL, "LIST", "token ids, as 3,7,11"},
    {"chunk", OPTION_COUNT, &chunk, "64", "N", "rows of a step", 1, ROWS / 2},
    {"draft", OPTION_COUNT, &draft, "0", "N", "wrong rows behind every chunk", 0, ROWS / 2},
    {"out", OPTION_TEXT, &out_file, NULL, "FILE", "where the logits go"},
};

static const struct options_program program = {
    .name = "steptool",
    .purpose = "Runs a prompt through trunk stages and writes all logits.",
    .option = table,
    .count = sizeof table / sizeof *table,
};

struct tool {
    struct checkpoint checkpoint;
    struct links *links;
    struct link_call call[STAGES];
    struct queue done;
    uint64_t number;
    uint32_t token[ROWS];
    uint32_t tokens;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "steptool: %s: %s\n", what, why);
    exit(1);
}

static void read_ids(struct tool *t)
{
    const char *at = ids;
    for (char *end; *at; at = *end == ',' ? end + 1 : end) {
        unsigned long id = strtoul(at, &end, 10);
        if (end == at || (*end && *end != ',') || t->tokens == ROWS)
            die("--ids", "expected token ids, as 3,7,11");
        t->token[t->tokens++] = (uint32_t)id;
    }
}

static void connect_stages(struct tool *t, struct problems *p)
{
    struct links_options o = {.role = "coordinator", .payload_most = (uint64_t)1 << 32};
    if (checkpoint_open(&t->checkpoint, checkpoint_folder, p) ||
        secret_load(secret_file, o.secret, p))
        die("opening", p->text);
    memcpy(o.model, t->checkpoint.digest, sizeof o.model);
    if (links_open(&t->links, &o) || queue_open(&t->done, STAGES))
        die("links", "no memory");
    for (size_t i = 0; i < stages.count && i < STAGES; i++) {
        struct link *l;
        if (links_add(t->links, stages.item[i], &l, p))
            die(stages.item[i], p->text);
        if (link_call_open(&t->call[i], l))
            die(stages.item[i], "no memory");
    }
    if (links_start(t->links))
        die("links", "no thread");
}

static bool is_ready(struct link *l)
{
    const Kapok__HelloReply *h = link_hello_get(l);
    bool ready = h && h->trunk && h->trunk->ready;
    link_hello_put(l);
    return ready;
}

static void await_stages(struct tool *t)
{
    double end = thread_now() + PATIENCE;
    for (size_t i = 0; i < stages.count; i++)
        while (!is_ready(t->call[i].link)) {
            if (thread_now() > end)
                die(stages.item[i], "not ready");
            links_wait(t->links, links_generation(t->links), 0.1);
        }
}

/* The stage's answer lies in its call until the next one. */
static const struct msg *ask(struct tool *t, size_t stage, Kapok__Request *request,
                             const struct iovec *payload)
{
    struct link_call *c = &t->call[stage];
    void *ended;
    link_call_release(c);
    c->request = request;
    c->payload = payload;
    c->payload_parts = payload ? 1 : 0;
    c->seconds = 600;
    c->done = &t->done;
    link_call_start(c);
    queue_take(&t->done, -1, &ended);
    if (c->error)
        die(stages.item[stage], c->reason);
    return &c->reply;
}

static void open_sequence(struct tool *t)
{
    Kapok__Request request = KAPOK__REQUEST__INIT;
    Kapok__Open body = KAPOK__OPEN__INIT;
    request.body_case = KAPOK__REQUEST__BODY_OPEN;
    request.open = &body;
    body.sequence = SEQUENCE;
    body.positions = t->tokens + (uint32_t)draft;
    for (size_t i = 0; i < stages.count; i++)
        ask(t, i, &request, NULL);
}

/* Runs rows [at, end) and the drafts behind them; gives the logits of all of them. */
static const float *run_step(struct tool *t, uint32_t at, uint32_t end)
{
    static uint64_t sequence[ROWS], commit_sequence = SEQUENCE;
    static uint32_t position[ROWS], token[ROWS], commit_length;
    static protobuf_c_boolean logits[ROWS];
    Kapok__Request request = KAPOK__REQUEST__INIT;
    Kapok__Step body = KAPOK__STEP__INIT;
    size_t rows = end - at + draft;
    for (size_t i = 0; i < rows; i++) {
        bool is_draft = i >= end - at;
        sequence[i] = SEQUENCE;
        position[i] = at + (uint32_t)i;
        token[i] = is_draft ? (t->token[0] + (uint32_t)i) % t->checkpoint.shape.vocab
                            : t->token[at + i];
        logits[i] = !is_draft;
    }
    request.body_case = KAPOK__REQUEST__BODY_STEP;
    request.step = &body;
    body.number = ++t->number;
    body.n_sequence = body.n_position = body.n_token = body.n_logits = rows;
    body.sequence = sequence;
    body.position = position;
    body.token = token;
    body.logits = logits;
    body.n_commit_sequence = body.n_commit_length = 1;
    body.commit_sequence = &commit_sequence;
    body.commit_length = &commit_length;
    commit_length = at;
    const struct msg *m = NULL;
    for (size_t i = 0; i < stages.count; i++) {
        struct iovec payload = {m ? (void *)m->payload : NULL, m ? m->payload_bytes : 0};
        m = ask(t, i, &request, m ? &payload : NULL);
    }
    if (m->payload_bytes != (end - at) * (size_t)t->checkpoint.shape.vocab * sizeof(float))
        die("answer", "not the logits that were asked for");
    return (const float *)m->payload;
}

static void run_all(struct tool *t)
{
    FILE *out = fopen(out_file, "wb");
    if (!out)
        die(out_file, strerror(errno));
    for (uint32_t at = 0; at < t->tokens; at += (uint32_t)chunk) {
        uint32_t left = t->tokens - at, end = left < chunk ? t->tokens : at + (uint32_t)chunk;
        const float *logits = run_step(t, at, end);
        size_t count = (end - at) * (size_t)t->checkpoint.shape.vocab;
        if (fwrite(logits, sizeof *logits, count, out) != count)
            die(out_file, strerror(errno));
    }
    if (fclose(out))
        die(out_file, strerror(errno));
}

int main(int argc, char **argv)
{
    static struct problems problems;
    static struct tool tool;
    struct options options;
    problems_init(&problems);
    thread_block_signals();
    options_parse(&program, argc, argv, &options);
    if (!checkpoint_folder || !secret_file || !ids || !out_file || !stages.count ||
        stages.count > STAGES)
        die("options", "--checkpoint, --secret, --stage, --ids and --out are needed");
    read_ids(&tool);
    connect_stages(&tool, &problems);
    await_stages(&tool);
    tool.number = (uint64_t)(thread_now() * 1e6); /* never one that was used before */
    open_sequence(&tool);
    run_all(&tool);
    for (size_t i = 0; i < stages.count; i++)
        link_call_close(&tool.call[i]);
    links_close(tool.links);
    queue_free(&tool.done);
    checkpoint_close(&tool.checkpoint);
    options_release(&options);
    return 0;
}
