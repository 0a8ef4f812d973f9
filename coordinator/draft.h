/*
 * Drafts without a draft model: what followed the last time the sequence's newest tokens stood
 * in it (n-gram lookup), proposed as further rows of the next step. A draft is kept only when
 * it is what would have been sampled, so proposals change the clock and nothing else.
 *
 * How many are proposed follows from how the last ones did: twice as many after all were right,
 * half after some were wrong; when none would be left, none are proposed for a while, each time
 * for longer.
 */
#ifndef COORDINATOR_DRAFT_H
#define COORDINATOR_DRAFT_H

#include <stdint.h>

#define DRAFT_MOST 7 /* with the row they follow: 8 rows, which stages can commit in part */

struct draft {
    uint32_t length;   /* how many to propose */
    uint32_t pause;    /* tokens until the next try */
    uint32_t patience; /* length of the next pause */
};

void draft_init(struct draft *d);

/* Proposes at most `most` tokens to follow token[0..count); the number. */
uint32_t draft_propose(const struct draft *d, const uint32_t *token, uint32_t count,
                       uint32_t most, uint32_t *ret_draft);

/* A step's outcome: of `proposed` drafts the first `accepted` were right; a token was added. */
void draft_learn(struct draft *d, uint32_t proposed, uint32_t accepted);

#endif
