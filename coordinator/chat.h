/* POST /v1/chat/completions: the next message of a conversation. */
#ifndef COORDINATOR_CHAT_H
#define COORDINATOR_CHAT_H

#include "coordinator/answer.h"

const struct answer_kind *chat_kind(void);

#endif
