/*
 * See the header. Parts are opened in the order of their needs and closed in reverse; threads
 * start when everything is open. At the end HTTP stops first, so that nothing new comes.
 */
#include "coordinator/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/api_error.h"
#include "coordinator/routes.h"

#define PROGRAM_BODY_MOST   ((size_t)16 << 20)
#define PROGRAM_BODIES_MOST ((size_t)256 << 20)
#define PROGRAM_CONNECTIONS 16384
#define PROGRAM_LOGITS_ROWS 256 /* rows of logits one reply may carry at most */

struct program {
    struct checkpoint checkpoint;
    struct tokenizer *tokenizer;
    struct links *links;
    struct link *stage[HUB_STAGES];
    struct scheduler *scheduler;
    struct monitor *monitor;
    struct background *background;
    char model[33];
    struct http *http;
    char *api_key;
    struct api api;
    bool scheduling, monitoring;
};

static int need(const char *value, const char *option, struct problems *p)
{
    if (value != NULL)
        return 0;
    problems_add(p, "--%s is missing", option);
    return -EINVAL;
}

int program_check(const struct program_options *o, struct problems *p)
{
    enum log_level level;
    bool loopback = true;
    int error = need(o->checkpoint, "checkpoint", p) | need(o->secret, "secret", p);

    if (log_level_parse(o->log, &level) != 0) {
        problems_add(p, "--log %s is no level: expected debug, info, warn or error", o->log);
        error = -EINVAL;
    } else {
        log_init("kapok-coordinator", level);
    }
    if (o->trunks.count == 0 || o->trunks.count > HUB_STAGES) {
        problems_add(p, "--trunk must be given 1 to %d times, found %zu", HUB_STAGES,
                     o->trunks.count);
        error = -EINVAL;
    }
    if (http_loopback(o->listen, &loopback) != 0) {
        problems_add(p, "--listen %s is not HOST:PORT with a numeric host", o->listen);
        error = -EINVAL;
    } else if (!loopback && o->api_key_file == NULL) {
        problems_add(p,
                     "--listen %s can be reached from other machines: an API key is needed, "
                     "give --api-key-file, or listen on 127.0.0.1",
                     o->listen);
        error = -EINVAL;
    }
    return error != 0 ? -EINVAL : 0;
}

/* The key is the file's first line. */
static int load_key(struct program *g, const char *path, struct problems *p)
{
    size_t length;
    int error;

    if (path == NULL)
        return 0;
    error = file_read(path, 4096, &g->api_key, &length);
    if (error != 0) {
        problems_add(p, "%s: %s", path, strerror(-error));
        return error;
    }
    g->api_key[strcspn(g->api_key, "\r\n")] = 0;
    if (g->api_key[0] != 0)
        return 0;
    problems_add(p, "%s: expected an API key in the first line, found nothing", path);
    return -EINVAL;
}

static uint64_t reply_most(const struct shape *s)
{
    uint64_t rows = (uint64_t)HUB_ROWS * SHAPE_SOURCES * s->hidden * sizeof(float);
    uint64_t logits = (uint64_t)PROGRAM_LOGITS_ROWS * s->vocab * sizeof(float);

    return (rows > logits ? rows : logits) + MSG_HEADER_MOST;
}

static int open_links(struct program *g, const struct program_options *o, struct problems *p)
{
    struct links_options options = {.role = "coordinator",
                                    .payload_most = reply_most(&g->checkpoint.shape)};
    int error = secret_load(o->secret, options.secret, p);

    if (error != 0)
        return error;
    memcpy(options.model, g->checkpoint.digest, sizeof options.model);
    error = links_open(&g->links, &options);
    for (size_t i = 0; i < o->trunks.count && error == 0; i++)
        error = links_add(g->links, o->trunks.item[i], &g->stage[i], p);
    return error;
}

/* Without one, prompts are token ids. */
static int open_tokenizer(struct program *g, struct problems *p)
{
    int error =
        tokenizer_open(&g->tokenizer, g->checkpoint.folder, g->checkpoint.shape.vocab, p);

    if (error == -ENOENT && p->count == 0) {
        log_info("the checkpoint has no tokenizer: prompts must be token ids");
        return 0;
    }
    return error;
}

static int open_background(struct program *g, const struct program_options *o,
                           struct problems *p)
{
    checkpoint_digest_text(g->checkpoint.digest, g->model);
    return background_open(&g->background, o->journal, g->model, p);
}

static int open_scheduler(struct program *g, const struct program_options *o)
{
    struct scheduler_options options = {.links = g->links,
                                        .stage = g->stage,
                                        .stages = o->trunks.count,
                                        .shape = &g->checkpoint.shape,
                                        .prefill_chunk = (uint32_t)o->prefill_chunk,
                                        .requests = (uint32_t)o->requests,
                                        .speculate = !o->no_drafts,
                                        .sync = background_sync,
                                        .context = g->background};
    int error = scheduler_open(&g->scheduler, &options);

    if (error == 0)
        error = monitor_open(&g->monitor, g->links, scheduler_hub(g->scheduler));
    return error;
}

static int start_threads(struct program *g)
{
    int error = links_start(g->links);

    if (error == 0)
        error = scheduler_start(g->scheduler);
    g->scheduling = error == 0;
    if (error == 0)
        error = monitor_start(g->monitor);
    g->monitoring = g->scheduling && error == 0;
    return error;
}

static int serve(struct program *g, const struct program_options *o, struct problems *p)
{
    struct http_options options = {.listen = o->listen,
                                   .body_most = PROGRAM_BODY_MOST,
                                   .bodies_most = PROGRAM_BODIES_MOST,
                                   .connections = PROGRAM_CONNECTIONS,
                                   .header_seconds = 60,
                                   .body_seconds = 300,
                                   .comment_seconds = 8,
                                   .handle = routes_handle,
                                   .explain = api_error_explain,
                                   .context = &g->api};

    g->api.model = o->model;
    g->api.checkpoint = &g->checkpoint;
    g->api.tokenizer = g->tokenizer;
    g->api.scheduler = g->scheduler;
    g->api.monitor = g->monitor;
    g->api.background = g->background;
    g->api.api_key = g->api_key;
    g->api.started = time(NULL);
    background_resume(g->background, &g->api);
    return http_open(&g->http, &options, p);
}

int program_start(struct program **ret_program, const struct program_options *o,
                  struct problems *p)
{
    struct program *g = calloc(1, sizeof *g);
    int error;

    if (g == NULL)
        return -ENOMEM;
    memory_keep_freed();
    error = load_key(g, o->api_key_file, p);
    if (error == 0)
        error = checkpoint_open(&g->checkpoint, o->checkpoint, p);
    if (error == 0)
        error = open_tokenizer(g, p);
    if (error == 0)
        error = open_links(g, o, p);
    if (error == 0)
        error = open_background(g, o, p);
    if (error == 0)
        error = open_scheduler(g, o);
    if (error == 0)
        error = serve(g, o, p);
    if (error == 0)
        error = start_threads(g);
    if (error != 0) {
        if (p->count == 0)
            problems_add(p, "cannot start: %s", strerror(-error));
        program_stop(g);
        return error;
    }
    *ret_program = g;
    return 0;
}

const char *program_address(const struct program *g)
{
    return http_address(g->http);
}

void program_stop(struct program *g)
{
    if (g == NULL)
        return;
    http_close(g->http);
    if (g->monitoring)
        monitor_stop(g->monitor);
    if (g->scheduling)
        scheduler_stop(g->scheduler);
    monitor_close(g->monitor);
    scheduler_close(g->scheduler);
    background_close(g->background);
    if (g->links != NULL)
        links_close(g->links);
    tokenizer_close(g->tokenizer);
    checkpoint_close(&g->checkpoint);
    free(g->api_key);
    free(g);
}
