/*
 * What the request handlers share: the model, the scheduler, the monitor. Filled in by main.c
 * before the first request, read-only afterwards.
 */
#ifndef COORDINATOR_API_H
#define COORDINATOR_API_H

#include <time.h>

#include "coordinator/background.h"
#include "coordinator/monitor.h"
#include "coordinator/scheduler.h"
#include "coordinator/text/tokenizer.h"
#include "proto/checkpoint.h"

struct api {
    const char *model; /* the name clients use */
    const struct checkpoint *checkpoint;
    struct tokenizer *tokenizer; /* NULL: the checkpoint has none */
    struct scheduler *scheduler;
    struct monitor *monitor;
    struct background *background;
    const char *api_key; /* NULL: none is asked for */
    time_t started;
};

#endif
