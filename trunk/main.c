/*
 * kapok-trunk: runs a range of the model's layers for batches of rows. Threads, started by
 * stage_start(): feeder (owns the weights' disk), step (owns the sequences and the arithmetic,
 * with --threads of OpenMP's), reception (requests), the links' watcher, and what nng starts
 * for its sockets. This one waits.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/thread.h"
#include "trunk/stage.h"

static struct stage_options chosen;
static struct option_list expertds;
static const char *level;

static const struct option table[] = {
    {"checkpoint", OPTION_TEXT, &chosen.checkpoint, NULL, "DIR", "the released checkpoint"},
    {"listen", OPTION_TEXT, &chosen.listen, "tcp://127.0.0.1:7201", "ADDRESS", "port 0: any"},
    {"secret", OPTION_TEXT, &chosen.secret, NULL, "FILE", "the deployment's secret"},
    {"expertd", OPTION_LIST, &expertds, NULL, "ADDRESS", "one that serves experts"},
    {"layers", OPTION_TEXT, &chosen.layers, NULL, "RANGE", "layers to run, as 0-6"},
    {"memory", OPTION_SIZE, &chosen.memory, "8G", "BYTES", "for everything it holds", 1},
    {"ring", OPTION_SIZE, &chosen.ring, "0", "BYTES", "for weights on their way; 0: choose"},
    {"threads", OPTION_COUNT, &chosen.threads, "0", "N", "that compute; 0: one a CPU", 0, 1024},
    {"isa", OPTION_TEXT, &chosen.isa, NULL, "NAME", "c, avx2 or avx512 at most"},
    {"sequences", OPTION_COUNT, &chosen.sequences, "0", "N", "at once; 0: choose", 0, 4096},
    {"context", OPTION_COUNT, &chosen.context, "0", "N", "positions of all; 0: choose", 0,
     1 << 28},
    {"rows", OPTION_COUNT, &chosen.rows, "0", "N", "of a step; 0: choose", 0, 8192},
    {"deadline", OPTION_REAL, &chosen.deadline, "120", "SECONDS", "of a request to an expertd"},
    {"buffered", OPTION_FLAG, &chosen.buffered, NULL, NULL, "read without O_DIRECT"},
    {"log", OPTION_TEXT, &level, "info", "LEVEL", "debug, info, warn or error"},
};

static const struct options_program program = {
    .name = "kapok-trunk",
    .purpose = "Runs a range of the model's layers.",
    .option = table,
    .count = sizeof table / sizeof *table,
};

static int refuse(const struct problems *p, int code)
{
    log_problems(LOG_ERROR, p);
    return code;
}

static int check_options(struct problems *p)
{
    enum log_level lowest = LOG_INFO;
    if (log_level_parse(level, &lowest))
        problems_add(p, "--log %s: expected debug, info, warn or error", level);
    if (!chosen.checkpoint)
        problems_add(p, "--checkpoint is missing");
    if (!chosen.secret)
        problems_add(p, "--secret is missing");
    if (!(chosen.deadline > 0))
        problems_add(p, "--deadline %g: expected more than 0 seconds", chosen.deadline);
    log_init(program.name, lowest);
    return p->count ? -1 : 0;
}

static int serve(struct problems *p)
{
    struct stage *s = NULL;
    char text[256];
    double begun = thread_now();
    int r = stage_open(&s, &chosen, p);
    if (!r)
        stage_print_memory(s, stderr);
    if (!r)
        r = stage_start(s, p);
    if (!r) {
        printf("listening %s\n", stage_address(s));
        fflush(stdout);
        stage_describe(s, text, sizeof text);
        log_info("serving %s seconds=%.2f resident=%llu", text, thread_now() - begun,
                 (unsigned long long)memory_resident());
        log_info("stopping signal=%d", thread_wait_signal());
    }
    stage_close(s);
    return r ? refuse(p, EXIT_FAILURE) : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static struct problems problems;
    struct options options;
    char text[2048];

    /* nng allocates every message; without these each large one is mapped and faulted anew. */
    memory_keep_freed();
    thread_block_signals();
    problems_init(&problems);
    options_parse(&program, argc, argv, &options);
    chosen.expertd = (const char *const *)expertds.item;
    chosen.expertds = expertds.count;
    int code = 2;
    if (check_options(&problems)) {
        refuse(&problems, code);
    } else {
        options_describe(&program, text, sizeof text);
        log_info("options %s", text);
        code = serve(&problems);
    }
    options_release(&options);
    return code;
}
