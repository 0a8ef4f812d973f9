/*
 * kapok-expertd: serves routed experts from disk.
 *
 * Threads, started by service_start(): intake and opener (requests), drive (the disk and the
 * cache), compute (--threads of them), and what nng starts for its sockets. This one waits.
 */
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/thread.h"
#include "expertd/service.h"

static struct service_options chosen;
static const char *level;

static const struct option table[] = {
    {"checkpoint", OPTION_TEXT, &chosen.checkpoint, NULL, "DIR", "the released checkpoint"},
    {"listen", OPTION_TEXT, &chosen.listen, "tcp://127.0.0.1:7101", "ADDRESS",
     "where to be asked; port 0 lets the kernel choose"},
    {"secret", OPTION_TEXT, &chosen.secret, NULL, "FILE", "the deployment's secret"},
    {"layers", OPTION_TEXT, &chosen.layers, NULL, "LIST", "layers to serve, as 1-5,9"},
    {"experts", OPTION_TEXT, &chosen.experts, NULL, "LIST", "experts to serve"},
    {"bands", OPTION_TEXT, &chosen.bands, NULL, "LIST", "bands of them to serve"},
    {"memory", OPTION_SIZE, &chosen.memory, "2G", "BYTES", "for everything it holds", 1},
    {"threads", OPTION_COUNT, &chosen.threads, "0", "N", "that compute; 0: one a CPU", 0, 1024},
    {"rows", OPTION_COUNT, &chosen.rows, "256", "N", "rows of one request at most", 1, 65536},
    {"requests", OPTION_COUNT, &chosen.requests, "4", "N", "requests worked on at once", 1,
     256},
    {"isa", OPTION_TEXT, &chosen.isa, NULL, "NAME",
     "at most these instructions: c, avx2, avx512"},
    {"buffered", OPTION_FLAG, &chosen.buffered, NULL, NULL,
     "read through the page cache, for file systems without O_DIRECT"},
    {"log", OPTION_TEXT, &level, "info", "LEVEL", "debug, info, warn or error"},
};

static const struct options_program program = {
    .name = "kapok-expertd",
    .purpose = "Serves routed experts from disk.",
    .option = table,
    .count = sizeof table / sizeof *table,
};

/* nng allocates every message; without these each large one is mapped and faulted in anew. */
static void tune_malloc(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_TOP_PAD, 64 << 20);
}

static int refuse(const struct problems *p, int code)
{
    const char *line = p->text;
    for (size_t n; *line; line += n + (line[n] == '\n')) {
        n = strcspn(line, "\n");
        log_error("%.*s", (int)n, line);
    }
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
    log_init(program.name, lowest);
    return p->count ? -1 : 0;
}

static int serve(struct problems *p)
{
    struct service *s = NULL;
    double begun = thread_now();
    int r = service_open(&s, &chosen, p);
    if (!r)
        service_print_memory(s, stderr);
    if (!r)
        r = service_start(s, p);
    if (!r) {
        printf("listening %s\n", service_address(s));
        fflush(stdout);
        log_info("serving tiles=%llu seconds=%.2f resident=%llu",
                 (unsigned long long)service_tiles(s), thread_now() - begun,
                 (unsigned long long)memory_resident());
        log_info("stopping signal=%d", thread_wait_signal());
    }
    service_close(s);
    return r ? refuse(p, EXIT_FAILURE) : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static struct problems problems;
    struct options options;
    char text[2048];

    tune_malloc();
    thread_block_signals();
    problems_init(&problems);
    options_parse(&program, argc, argv, &options);
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
