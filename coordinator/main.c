/*
 * kapok-coordinator: what clients talk to. Turns requests into tokens with the help of the
 * trunk's stages.
 *
 * Threads: "scheduler" owns the sequences and the hub; "monitor" asks the stages for figures;
 * "http-watch" looks after connections; libmicrohttpd's own runs the request handlers; the
 * links' own greets the stages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "base/thread.h"
#include "coordinator/program.h"

static struct program_options o;

static const struct option options[] = {
    {"checkpoint", OPTION_TEXT, &o.checkpoint, NULL, "DIR", "folder of the released shards"},
    {"listen", OPTION_TEXT, &o.listen, "127.0.0.1:8000", "HOST:PORT",
     "where to serve HTTP; port 0: the kernel chooses"},
    {"secret", OPTION_TEXT, &o.secret, NULL, "FILE", "the deployment's secret, 32 bytes"},
    {"trunk", OPTION_LIST, &o.trunks, NULL, "ADDRESS",
     "a trunk stage, tcp://127.0.0.1:PORT; once for each, in the order of their layers"},
    {"prefill-chunk", OPTION_COUNT, &o.prefill_chunk, "64", "ROWS",
     "rows of prompts in one step", 1, HUB_ROWS},
    {"model", OPTION_TEXT, &o.model, "kimi-k3", "NAME", "the model's name for clients"},
    {"requests", OPTION_COUNT, &o.requests, "256", "N",
     "generations held at once, waiting ones included; more are answered 429", 1, 65536},
    {"no-drafts", OPTION_FLAG, &o.no_drafts, NULL, NULL,
     "do not guess tokens ahead (guesses change the time, never the answer)"},
    {"api-key-file", OPTION_TEXT, &o.api_key_file, NULL, "FILE",
     "file with the bearer key clients must show; needed on any address but loopback"},
    {"journal", OPTION_TEXT, &o.journal, NULL, "FILE",
     "journal of background generations, which then outlive this process"},
    {"log", OPTION_TEXT, &o.log, "info", "LEVEL", "lowest level logged: debug info warn error"},
};

static const struct options_program program = {
    .name = "kapok-coordinator",
    .purpose = "Serves the OpenAI-compatible HTTP API on a pipeline of trunk stages.",
    .option = options,
    .count = sizeof options / sizeof *options,
};

static int fail(const struct problems *p)
{
    fprintf(stderr, "%s: %s\n", program.name, p->text);
    return 1;
}

int main(int argc, char **argv)
{
    struct problems problems;
    struct options parsed;
    struct program *running;
    char line[4096];
    int code = 0;

    options_parse(&program, argc, argv, &parsed);
    problems_init(&problems);
    thread_block_signals();
    if (program_check(&o, &problems) != 0)
        return fail(&problems);
    options_describe(&program, line, sizeof line);
    log_info("starting %s", line);
    if (program_start(&running, &o, &problems) != 0) {
        code = fail(&problems);
    } else {
        printf("listening http://%s\n", program_address(running));
        fflush(stdout);
        log_info("stopping signal=%d", thread_wait_signal());
        program_stop(running);
    }
    options_release(&parsed);
    return code;
}
