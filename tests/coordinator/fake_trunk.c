/* See the header. One thread answers steps, another everything that must not wait for them. */
#include "tests/coordinator/fake_trunk.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"

#define FAKE_ROOM 4096
#define HUB_IDS   256

struct fake_sequence {
    bool open;
    uint32_t count; /* rows run, pending ones included */
    uint32_t committed;
    uint32_t room;
    uint32_t token[FAKE_ROOM];
};

struct fake_trunk {
    struct fake_trunk_options options;
    struct link_server *server;
    struct queue incoming, steps;
    struct thread front, back;
    pthread_mutex_t lock;
    struct fake_sequence *sequence; /* by id */
    uint64_t instance, positions;
    uint64_t last_number;
    bool last_kept;
    Kapok__StepReply last_reply;
    float *payload, *expected;
    size_t payload_bytes;
    uint64_t steps_run, rows_run, cancelled;
    atomic_ullong cancel;
    _Atomic double layer_seconds;
};

void fake_trunk_shape(struct shape *s)
{
    memset(s, 0, sizeof *s);
    s->hidden = 8;
    s->layers = 6;
    s->vocab = 160;
    s->context = 2048;
    s->residual_block = 4;
    s->dense_layers = 1;
    s->experts = 4;
    s->bands = 12;
    s->end_token = 150;
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t prefix(const uint32_t *token, uint32_t count)
{
    uint64_t h = count;

    for (uint32_t i = 0; i < count; i++)
        h = mix(h * 31 + token[i] + 1);
    return h;
}

void fake_trunk_logits(const struct shape *s, const uint32_t *token, uint32_t count,
                       bool repeats, float *ret_logits)
{
    uint64_t h = prefix(token, count);

    for (uint32_t i = 0; i < s->vocab; i++)
        ret_logits[i] = (float)(mix(h + i * 77) >> 40) * 0x1p-21f - 4.0f;
    if (repeats)
        ret_logits[(token[count - 1] * 7 + 3) % 11] += 9.0f;
}

static uint32_t sources(const struct fake_trunk *f, uint32_t layer)
{
    return shape_snapshots(f->options.shape, layer) + 1;
}

/* What flows between stages: the prefix' hash in every number. */
static void activations(const struct fake_trunk *f, const struct fake_sequence *q,
                        uint32_t count, uint32_t layer, float *out)
{
    size_t n = (size_t)sources(f, layer) * f->options.shape->hidden;

    for (size_t i = 0; i < n; i++)
        out[i] = (float)((prefix(q->token, count) + i) & 0xffff);
}

static int apply_commits(struct fake_trunk *f, const Kapok__Step *s)
{
    for (size_t i = 0; i < s->n_commit_sequence; i++) {
        struct fake_sequence *q = &f->sequence[s->commit_sequence[i]];

        if (s->commit_sequence[i] >= HUB_IDS || !q->open)
            return -ENOENT;
        if (s->commit_length[i] > q->count || s->commit_length[i] < q->committed)
            return -EINVAL;
        q->count = q->committed = s->commit_length[i];
    }
    return 0;
}

static bool last_stage(const struct fake_trunk *f)
{
    return f->options.layer_end == f->options.shape->layers;
}

/* Tokens of the script's beginning that the sequence ends with. */
static size_t followed(const struct fake_script *s, const struct fake_sequence *q)
{
    for (size_t n = s->count - 1 < q->count ? s->count - 1 : q->count; n > 0; n--)
        if (memcmp(s->id, q->token + q->count - n, n * sizeof *s->id) == 0)
            return n;
    return 0;
}

/* Makes the next token of the script that is followed furthest the likeliest. */
static void follow_scripts(const struct fake_trunk *f, const struct fake_sequence *q,
                           float *logits)
{
    size_t best = 0;
    uint32_t next = 0;

    for (size_t i = 0; i < f->options.scripts; i++) {
        size_t n = followed(&f->options.script[i], q);

        if (n > best) {
            best = n;
            next = f->options.script[i].id[n];
        }
    }
    if (best > 2)
        logits[next] += 40.0f;
}

/* Runs row i; *used is how many numbers of the payload are filled. */
static int run_row(struct fake_trunk *f, const struct link_request *r, const Kapok__Step *s,
                   size_t i, size_t *used)
{
    struct fake_sequence *q = &f->sequence[s->sequence[i]];
    size_t in = (size_t)sources(f, f->options.layer_first) * f->options.shape->hidden;

    if (s->sequence[i] >= HUB_IDS || !q->open)
        return -ENOENT;
    if (s->position[i] != q->count || q->count >= q->room)
        return -EINVAL;
    q->token[q->count++] = s->token[i];
    if (f->options.layer_first > 0) {
        activations(f, q, q->count, f->options.layer_first, f->expected);
        if (memcmp(f->expected, (const float *)r->msg.payload + i * in,
                   in * sizeof *f->expected) != 0)
            return -EPROTO;
    }
    if (!last_stage(f)) {
        activations(f, q, q->count, f->options.layer_end, f->payload + *used);
        *used += (size_t)sources(f, f->options.layer_end) * f->options.shape->hidden;
    } else if (s->logits[i]) {
        fake_trunk_logits(f->options.shape, q->token, q->count, f->options.repeats,
                          f->payload + *used);
        follow_scripts(f, q, f->payload + *used);
        *used += f->options.shape->vocab;
    }
    return 0;
}

static int pass_layers(struct fake_trunk *f, uint64_t number)
{
    for (uint32_t l = f->options.layer_first; l < f->options.layer_end; l++) {
        usleep((useconds_t)(atomic_load(&f->layer_seconds) * 1e6));
        if (atomic_load(&f->cancel) == number)
            return -ECANCELED;
    }
    return 0;
}

/* Undoes the rows of a step that failed. */
static void undo(struct fake_trunk *f, const Kapok__Step *s)
{
    for (size_t i = 0; i < s->n_commit_sequence; i++)
        if (s->commit_sequence[i] < HUB_IDS && f->sequence[s->commit_sequence[i]].open)
            f->sequence[s->commit_sequence[i]].count =
                f->sequence[s->commit_sequence[i]].committed;
}

static int run_step(struct fake_trunk *f, const struct link_request *r, const Kapok__Step *s)
{
    size_t used = 0;
    int error;

    if (s->number == f->last_number)
        return f->last_kept ? 0 : -EINVAL;
    f->last_number = s->number;
    f->last_kept = false;
    if (s->n_sequence > f->options.rows)
        return -EINVAL;
    error = apply_commits(f, s);
    for (size_t i = 0; i < s->n_sequence && error == 0; i++)
        error = run_row(f, r, s, i, &used);
    pthread_mutex_unlock(&f->lock);
    if (error == 0)
        error = pass_layers(f, s->number);
    pthread_mutex_lock(&f->lock);
    if (error == -ECANCELED)
        f->cancelled++;
    if (error != 0) {
        undo(f, s);
        return error;
    }
    f->steps_run++;
    f->rows_run += s->n_sequence;
    f->last_kept = true;
    f->payload_bytes = used * sizeof *f->payload;
    f->last_reply.trunk_bytes = 1000;
    f->last_reply.expert_bytes = 10 * s->n_sequence;
    return 0;
}

static void back_run(void *context)
{
    struct fake_trunk *f = context;
    void *item;

    while (queue_take(&f->steps, -1, &item) == 0) {
        struct link_request *r = item;
        Kapok__Reply reply = KAPOK__REPLY__INIT;
        struct iovec payload;
        int error;

        pthread_mutex_lock(&f->lock);
        error = run_step(f, r, r->msg.request->step);
        reply.body_case = KAPOK__REPLY__BODY_STEP;
        reply.step = &f->last_reply;
        payload = (struct iovec){f->payload, f->payload_bytes};
        if (error == 0)
            link_server_reply(r, &reply, &payload, 1);
        else
            link_server_refuse(r, error, "step refused: %s", strerror(-error));
        pthread_mutex_unlock(&f->lock);
    }
}

static int open_sequence(struct fake_trunk *f, uint64_t id, uint32_t positions)
{
    struct fake_sequence *q = &f->sequence[id];
    unsigned open = 0;

    assert(id < HUB_IDS && positions <= FAKE_ROOM);
    if (q->open)
        f->positions -= q->room;
    q->open = false;
    for (size_t i = 0; i < HUB_IDS; i++)
        open += f->sequence[i].open;
    if (open == f->options.sequences || f->positions + positions > f->options.positions)
        return -ENOSPC;
    memset(q, 0, sizeof *q);
    q->open = true;
    q->room = positions;
    f->positions += positions;
    return 0;
}

static int fork_sequence(struct fake_trunk *f, const Kapok__Fork *b)
{
    struct fake_sequence *from = &f->sequence[b->from], *to = &f->sequence[b->to];
    int error;

    if (!from->open)
        return -ENOENT;
    error = open_sequence(f, b->to, b->positions);
    if (error != 0)
        return error;
    memcpy(to->token, from->token, sizeof to->token);
    to->count = to->committed = from->committed;
    return 0;
}

static void say_hello(struct fake_trunk *f, struct link_request *r)
{
    Kapok__Reply reply = KAPOK__REPLY__INIT;
    Kapok__HelloReply hello = KAPOK__HELLO_REPLY__INIT;
    Kapok__TrunkServes serves = KAPOK__TRUNK_SERVES__INIT;

    reply.body_case = KAPOK__REPLY__BODY_HELLO;
    reply.hello = &hello;
    hello.role = "trunk";
    hello.version = "fake";
    hello.instance = f->instance;
    hello.trunk = &serves;
    serves.layer_first = f->options.layer_first;
    serves.layer_end = f->options.layer_end;
    serves.rows_most = f->options.rows;
    serves.logits_most = f->options.logits;
    serves.sequences_most = f->options.sequences;
    serves.positions_most = f->options.positions;
    serves.ready = true;
    link_server_reply(r, &reply, NULL, 0);
}

static void answer_plain(struct link_request *r, int error)
{
    Kapok__Reply reply = KAPOK__REPLY__INIT;
    Kapok__StatsReply stats = KAPOK__STATS_REPLY__INIT;
    bool is_stats = r->msg.request->body_case == KAPOK__REQUEST__BODY_STATS;

    if (error != 0) {
        link_server_refuse(r, error, "refused: %s", strerror(-error));
        return;
    }
    stats.now = "idle";
    if (is_stats) {
        reply.body_case = KAPOK__REPLY__BODY_STATS;
        reply.stats = &stats;
    }
    link_server_reply(r, &reply, NULL, 0);
}

static int close_sequence(struct fake_trunk *f, uint64_t id)
{
    assert(id < HUB_IDS);
    if (f->sequence[id].open)
        f->positions -= f->sequence[id].room;
    f->sequence[id].open = false;
    return 0;
}

static void front_one(struct fake_trunk *f, struct link_request *r)
{
    const Kapok__Request *q = r->msg.request;
    int error = 0;

    switch (q->body_case) {
    case KAPOK__REQUEST__BODY_HELLO:
        say_hello(f, r);
        return;
    case KAPOK__REQUEST__BODY_STEP:
        queue_put(&f->steps, r);
        return;
    case KAPOK__REQUEST__BODY_CANCEL:
        atomic_store(&f->cancel, q->cancel->number);
        break;
    case KAPOK__REQUEST__BODY_OPEN:
        pthread_mutex_lock(&f->lock);
        error = open_sequence(f, q->open->sequence, q->open->positions);
        pthread_mutex_unlock(&f->lock);
        break;
    case KAPOK__REQUEST__BODY_FORK:
        pthread_mutex_lock(&f->lock);
        error = fork_sequence(f, q->fork);
        pthread_mutex_unlock(&f->lock);
        break;
    case KAPOK__REQUEST__BODY_CLOSE:
        pthread_mutex_lock(&f->lock);
        error = close_sequence(f, q->close->sequence);
        pthread_mutex_unlock(&f->lock);
        break;
    default:
        break;
    }
    answer_plain(r, error);
}

static void front_run(void *context)
{
    struct fake_trunk *f = context;
    void *item;

    while (queue_take(&f->incoming, -1, &item) == 0)
        front_one(f, item);
}

struct fake_trunk *fake_trunk_start(const struct fake_trunk_options *o)
{
    static atomic_ullong instances = 1;
    struct fake_trunk *f = calloc(1, sizeof *f);
    struct link_server_options options = {.address = o->address,
                                          .payload_most = 64 << 20,
                                          .requests = 16,
                                          .incoming = &f->incoming};
    struct problems p;

    problems_init(&p);
    f->options = *o;
    f->instance = atomic_fetch_add(&instances, 1) + (uint64_t)getpid() * 1000;
    f->sequence = calloc(HUB_IDS, sizeof *f->sequence);
    f->payload = calloc(o->rows, (o->shape->vocab + SHAPE_SOURCES * o->shape->hidden) *
                                     sizeof *f->payload);
    f->expected = calloc(SHAPE_SOURCES * o->shape->hidden, sizeof *f->expected);
    atomic_store(&f->layer_seconds, o->layer_seconds);
    kapok__step_reply__init(&f->last_reply);
    pthread_mutex_init(&f->lock, NULL);
    memcpy(options.secret, o->secret, sizeof options.secret);
    memcpy(options.model, o->model, sizeof options.model);
    if (queue_open(&f->incoming, 32) != 0 || queue_open(&f->steps, 32) != 0 ||
        link_server_open(&f->server, &options, &p) != 0) {
        fprintf(stderr, "%s\n", p.text);
        abort();
    }
    thread_start(&f->front, "fake-front", front_run, f);
    thread_start(&f->back, "fake-back", back_run, f);
    return f;
}

void fake_trunk_stop(struct fake_trunk *f)
{
    link_server_stop(f->server);
    queue_close(&f->incoming);
    queue_close(&f->steps);
    thread_join(&f->front);
    thread_join(&f->back);
    link_server_close(f->server);
    queue_free(&f->incoming);
    queue_free(&f->steps);
    pthread_mutex_destroy(&f->lock);
    free(f->sequence);
    free(f->payload);
    free(f->expected);
    free(f);
}

const char *fake_trunk_address(const struct fake_trunk *f)
{
    return link_server_address(f->server);
}

static uint64_t read_locked(struct fake_trunk *f, const uint64_t *what)
{
    uint64_t value;

    pthread_mutex_lock(&f->lock);
    value = *what;
    pthread_mutex_unlock(&f->lock);
    return value;
}

uint64_t fake_trunk_steps(struct fake_trunk *f)
{
    return read_locked(f, &f->steps_run);
}

uint64_t fake_trunk_rows(struct fake_trunk *f)
{
    return read_locked(f, &f->rows_run);
}

uint64_t fake_trunk_cancelled(struct fake_trunk *f)
{
    return read_locked(f, &f->cancelled);
}

unsigned fake_trunk_open(struct fake_trunk *f)
{
    unsigned open = 0;

    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < HUB_IDS; i++)
        open += f->sequence[i].open;
    pthread_mutex_unlock(&f->lock);
    return open;
}

void fake_trunk_slow(struct fake_trunk *f, double layer_seconds)
{
    atomic_store(&f->layer_seconds, layer_seconds);
}
