/* What scheduler*.c share; nobody else includes this. */
#ifndef COORDINATOR_SCHEDULER_PRIVATE_H
#define COORDINATOR_SCHEDULER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "coordinator/prefix.h"
#include "coordinator/scheduler.h"

/* A list in order of arrival. */
struct scheduler_list {
    struct generation *first, *last;
    uint32_t count;
};

struct scheduler {
    struct scheduler_options options;
    struct hub *hub;
    struct sampler *sampler;
    struct thread thread;
    atomic_bool stopping;

    pthread_mutex_t lock; /* of the next four */
    pthread_cond_t wake;
    struct scheduler_list waiting;
    uint32_t held; /* waiting and running */
    struct scheduler_status status;
    double step_began;

    /* The thread's own: */
    struct scheduler_list running;
    struct prefix prefix;
    struct generation *admitting; /* whose wish counts while the hub waits; NULL: the step's */
};

void scheduler_list_add(struct scheduler_list *l, struct generation *g);
void scheduler_list_remove(struct scheduler_list *l, struct generation *g);

/* Moves waiting generations to the running ones while the stages have room (scheduler_admit.c).
 */
void scheduler_admit(struct scheduler *s);
/* A generation is over before it ran. */
void scheduler_end(struct scheduler *s, struct generation *g, enum generation_end end,
                   const char *reason);
/* Keeps the end of a prompt that has just been committed, when there is room. */
void scheduler_keep_prompt(struct scheduler *s, struct generation *g);

/* Puts the next step together; the number of its rows. */
size_t scheduler_plan(struct scheduler *s);
/* Samples, tells and ends after a step that ran. */
void scheduler_settle(struct scheduler *s, const struct hub_result *result);
/* Ends one that is running: gives its sequence back, tells its owner. */
void scheduler_finish(struct scheduler *s, struct generation *g, enum generation_end end,
                      const char *reason);

#endif
