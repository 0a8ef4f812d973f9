/*
 * The thread that takes requests: Hello, Stats and Cancel are answered at once, whatever the
 * stage is doing; the rest goes to the runner.
 */
#ifndef TRUNK_RECEPTION_H
#define TRUNK_RECEPTION_H

#include "base/queue.h"
#include "base/thread.h"
#include "trunk/account.h"

struct reception {
    struct account account;
    struct queue *incoming; /* of struct link_request; closed to stop */
    struct thread thread;
};

int reception_start(struct reception *r);
void reception_stop(struct reception *r); /* after `incoming` was closed */

#endif
