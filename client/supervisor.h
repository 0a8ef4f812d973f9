/*
 * Starts the children of a layout in order (expertds, stages, coordinator: each needs the
 * addresses of those before), starts again what dies, and stops everything in the opposite
 * order. One thread: a poll over signals and the children's stdout.
 */
#ifndef CLIENT_SUPERVISOR_H
#define CLIENT_SUPERVISOR_H

#include "client/layout.h"
#include "client/rundir.h"

struct supervisor {
    struct layout *layout;
    const struct rundir *rundir;
    int signals;      /* signalfd */
    unsigned started; /* children that were started at least once: a prefix of all */
    int result;       /* exit code */
    bool stopping;
    /* Called every now and then while the coordinator listens. */
    void (*tick)(void *context, const char *url);
    void *context;
};

/* Runs until SIGINT, SIGTERM or a child that cannot start; gives the exit code. */
int supervisor_run(struct supervisor *s);

#endif
