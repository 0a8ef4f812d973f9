/* POST /v1/completions: a raw continuation of text or of token ids. */
#ifndef COORDINATOR_COMPLETIONS_H
#define COORDINATOR_COMPLETIONS_H

#include "coordinator/answer.h"

const struct answer_kind *completions_kind(void);

#endif
