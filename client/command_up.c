/*
 * kapok up: a pipeline on this machine, until Ctrl-C. Prints "ready URL" on stdout when the
 * first request would be served; everything else goes to stderr and to the logs in the run
 * directory.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "client/command.h"
#include "client/fetch.h"
#include "client/layout.h"
#include "client/rundir.h"
#include "client/supervisor.h"
#include "proto/secret.h"

struct up {
    struct layout_options layout;
    const char *run_dir, *level;
    bool dry_run;
    struct rundir rundir;
    bool ready;
};

static void read_options(struct up *u, int argc, char **argv, struct options *o)
{
    struct layout_options *l = &u->layout;
    const struct option table[] = {
        {"checkpoint", OPTION_TEXT, &l->checkpoint, NULL, "DIR",
         "Folder of the model: config.json and the shards"},
        {"region", OPTION_LIST, &l->regions, NULL, "PATH",
         "A packed region that serves experts; again for more (default: the checkpoint does)"},
        {"expertds", OPTION_COUNT, &l->expertds, NULL, "N",
         "Expert servers; the bands or regions are split between them (default: 1, or one for "
         "each region)",
         1, LAYOUT_EXPERTDS},
        {"stages", OPTION_COUNT, &l->stages, "1", "N",
         "Trunk processes; the layers are split between them", 1, LAYOUT_STAGES},
        {"threads", OPTION_COUNT, &l->threads, NULL, "N",
         "Threads of each process that computes (default: all CPUs)", 1, 1024},
        {"memory", OPTION_SIZE, &l->memory, NULL, "SIZE",
         "Memory of all processes together (default: each program's own)", 1},
        {"prefill-chunk", OPTION_COUNT, &l->prefill_chunk, NULL, "ROWS",
         "Rows of a prompt in one step (default: the coordinator's own)", 1, 65536},
        {"isa", OPTION_TEXT, &l->isa, NULL, "NAME",
         "Use at most this instruction set: c, avx2, avx512"},
        {"listen", OPTION_TEXT, &l->listen, "127.0.0.1:8000", "HOST:PORT",
         "Where the HTTP API listens; port 0: any"},
        {"run-dir", OPTION_TEXT, &u->run_dir, NULL, "DIR",
         "Secret, logs and pid files (default: /run/kapok for root, /tmp/kapok-UID for "
         "others)"},
        {"buffered", OPTION_FLAG, &l->buffered, NULL, NULL,
         "Read through the page cache, for file systems without O_DIRECT"},
        {"dry-run", OPTION_FLAG, &u->dry_run, NULL, NULL,
         "Print the command lines that would be started, and start nothing"},
        {"log", OPTION_TEXT, &u->level, "info", "LEVEL", "debug, info, warn or error"},
    };
    const struct options_program program = {
        .name = "kapok up",
        .purpose = "Starts a pipeline on this machine and waits until it is stopped.",
        .option = table,
        .count = sizeof table / sizeof table[0],
    };
    options_parse(&program, argc, argv, o);
}

static bool is_ready(const char *url)
{
    struct fetch_request r = {.url = url, .path = "/ready", .seconds = 2};
    struct fetch_answer a;
    bool ready = !fetch(&r, &a) && a.status == 200;
    fetch_release(&a);
    return ready;
}

static void tick(void *context, const char *url)
{
    struct up *u = context;
    char line[400];
    if (u->ready || !is_ready(url))
        return;
    u->ready = true;
    snprintf(line, sizeof line, "%s\n", url);
    rundir_write(&u->rundir, "url", line);
    printf("ready %s\n", url);
    fflush(stdout);
}

static int dry_run(struct up *u, struct problems *p)
{
    struct layout layout = {0};
    int r = layout_init(&layout, &u->layout, &u->rundir, p);
    if (!r) {
        layout_stages(&layout, &u->rundir);
        layout_coordinator(&layout, &u->rundir);
        layout_print(&layout, stdout);
    }
    layout_fini(&layout);
    return r ? COMMAND_FAILED : COMMAND_DONE;
}

static int run(struct up *u, struct problems *p)
{
    char path[RUNDIR_PATH + 64];
    struct layout layout = {0};
    int r = rundir_open(&u->rundir, p);
    if (!r)
        r = secret_make(rundir_file(&u->rundir, "secret", path), p);
    if (!r)
        r = layout_init(&layout, &u->layout, &u->rundir, p);
    int code = COMMAND_FAILED;
    if (!r) {
        struct supervisor s = {
            .layout = &layout, .rundir = &u->rundir, .tick = tick, .context = u};
        log_info("starting run_dir=%s expertds=%u stages=%u", u->rundir.path, layout.expertds,
                 layout.stages);
        code = supervisor_run(&s);
    }
    layout_fini(&layout);
    rundir_close(&u->rundir);
    return code;
}

int command_up(int argc, char **argv)
{
    struct up u = {0};
    struct options o;
    struct problems p;
    enum log_level level = LOG_INFO;
    read_options(&u, argc, argv, &o);
    problems_init(&p);
    if (!u.layout.checkpoint)
        problems_add(&p, "--checkpoint DIR is missing: the folder of the model");
    if (log_level_parse(u.level, &level))
        problems_add(&p, "--log %s: expected debug, info, warn or error", u.level);
    log_init("kapok", level);
    u.layout.log = u.level;
    rundir_name(&u.rundir, u.run_dir);
    int code = COMMAND_USAGE;
    if (!p.count)
        code = u.dry_run ? dry_run(&u, &p) : run(&u, &p);
    if (p.count)
        fprintf(stderr, "kapok up: %s\n", p.text);
    options_release(&o);
    return code;
}
