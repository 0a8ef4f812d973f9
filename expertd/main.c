/*
 * kapok-expertd: serves routed experts from disk.
 *
 * Threads, started by serving_start(): intake and opener (requests), one drive for each source
 * (its disk and its cache), compute (--threads), and nng's own. This one waits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/thread.h"
#include "expertd/serving.h"

struct settings {
    struct serving_options serving;
    const char *level;
};

static int refuse(const struct problems *p, int code)
{
    log_problems(LOG_ERROR, p);
    return code;
}

static int check_options(const struct settings *chosen, struct problems *p)
{
    enum log_level lowest = LOG_INFO;
    if (log_level_parse(chosen->level, &lowest))
        problems_add(p, "--log %s: expected debug, info, warn or error", chosen->level);
    if (!chosen->serving.secret)
        problems_add(p, "--secret is missing");
    log_init("kapok-expertd", lowest);
    return p->count ? refuse(p, 2) : 0;
}

static int serve(const struct serving_options *o, struct problems *p)
{
    struct serving *s = NULL;
    double begun = thread_now();
    int r = serving_open(&s, o, p);
    if (!r)
        serving_print_memory(s, stderr);
    if (!r)
        r = serving_start(s, p);
    if (!r) {
        printf("listening %s\n", serving_address(s));
        fflush(stdout);
        if (!serving_checks(s))
            log_warn("what is read is not checked; `kapok verify` writes the checksums");
        if (serving_counts(s) == -EBADMSG)
            log_warn("%s is not of this server; it begins without counts of use", o->counts);
        log_info("serving tiles=%llu seconds=%.2f resident=%llu",
                 (unsigned long long)serving_tiles(s), thread_now() - begun,
                 (unsigned long long)memory_resident());
        log_info("stopping signal=%d", thread_wait_signal());
    }
    serving_close(s);
    return r ? refuse(p, EXIT_FAILURE) : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct settings chosen = {0};
    struct serving_options *s = &chosen.serving;
    struct option_list regions = {0};
    const struct option table[] = {
        {"checkpoint", OPTION_TEXT, &s->checkpoint, NULL, "DIR", "the released checkpoint"},
        {"region", OPTION_LIST, &regions, NULL, "PATH", "a packed region; again for more"},
        {"listen", OPTION_TEXT, &s->listen, "tcp://127.0.0.1:7101", "ADDRESS", "port 0: any"},
        {"secret", OPTION_TEXT, &s->secret, NULL, "FILE", "the deployment's secret"},
        {"layers", OPTION_TEXT, &s->layers, NULL, "LIST", "layers to serve, as 1-5,9"},
        {"experts", OPTION_TEXT, &s->experts, NULL, "LIST", "experts to serve"},
        {"bands", OPTION_TEXT, &s->bands, NULL, "LIST", "bands of them to serve"},
        {"memory", OPTION_SIZE, &s->memory, "2G", "BYTES", "for everything it holds", 1},
        {"threads", OPTION_COUNT, &s->threads, "0", "N", "compute; 0: one a CPU", 0, 1024},
        {"rows", OPTION_COUNT, &s->rows, "256", "N", "rows of one request", 1, 65536},
        {"requests", OPTION_COUNT, &s->requests, "4", "N", "worked on at once", 1, 256},
        {"counts", OPTION_TEXT, &s->counts, NULL, "FILE", "remembers what was wanted"},
        {"isa", OPTION_TEXT, &s->isa, NULL, "NAME", "at most c, avx2 or avx512"},
        {"buffered", OPTION_FLAG, &s->buffered, NULL, NULL, "without O_DIRECT"},
        {"no-verify", OPTION_FLAG, &s->unchecked, NULL, NULL, "ignores checksums"},
        {"log", OPTION_TEXT, &chosen.level, "info", "LEVEL", "debug, info, warn or error"},
    };
    const struct options_program program = {"kapok-expertd", "Serves routed experts from disk.",
                                            NULL, table, sizeof table / sizeof *table};
    static struct problems problems;
    struct options options;
    char text[2048];

    memory_keep_freed();
    thread_block_signals();
    problems_init(&problems);
    options_parse(&program, argc, argv, &options);
    s->region = regions.item;
    s->regions = regions.count;
    int code = check_options(&chosen, &problems);
    if (!code) {
        options_describe(&program, text, sizeof text);
        log_info("options %s", text);
        code = serve(s, &problems);
    }
    options_release(&options);
    return code;
}
