/*
 * The coordinator's parts put together: what main.c starts and stops, and tests too.
 */
#ifndef COORDINATOR_PROGRAM_H
#define COORDINATOR_PROGRAM_H

#include "base/options.h"
#include "coordinator/hub.h"

struct program_options {
    const char *checkpoint, *listen, *secret, *model, *api_key_file, *journal, *log;
    struct option_list trunks;
    uint64_t prefill_chunk, requests;
    bool no_drafts;
};

struct program;

/* Is everything given, and allowed? Also starts the log. */
int program_check(const struct program_options *o, struct problems *p);

/* Opens and starts everything; it listens when this returns 0. */
int program_start(struct program **ret_program, const struct program_options *o,
                  struct problems *p);

const char *program_address(const struct program *g);

/* Stops: no new requests, running generations cancelled, threads joined, memory freed. */
void program_stop(struct program *g);

#endif
