/* One step from its message to its answer. Private to runner*.c. */
#ifndef TRUNK_RUNNER_STEP_H
#define TRUNK_RUNNER_STEP_H

#include "trunk/runner.h"

/* Checks the message, cuts the sequences as it says, runs its rows. On success r->output and
 * r->answer are the answer; else a negative errno with a sentence in `why`. */
int runner_step_run(struct runner *r, const struct msg *m, char *why, size_t size);

#endif
