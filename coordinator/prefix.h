/*
 * Sequences kept in the stages after their generation has ended, so that a request whose prompt
 * begins with the same tokens continues from there: a kept sequence serves a prompt when all
 * its standing tokens are the prompt's first ones and at least one of the prompt is left to
 * run.
 *
 * The state of a KDA layer cannot be cut back, so a sequence helps only at the position it is
 * at. Kept are the end of every answer (the next turn of a conversation begins with it) and the
 * end of every longer prompt (a turn whose client does not send the reasoning back, or another
 * answer to a common beginning). They hold room in the stages and are the first to go when
 * it is needed, least recently used first. The scheduler's thread owns it.
 */
#ifndef COORDINATOR_PREFIX_H
#define COORDINATOR_PREFIX_H

#include "coordinator/hub.h"

struct prefix_kept {
    struct sequence seq; /* its own tokens */
    struct prefix_kept *next;
};

struct prefix {
    struct prefix_kept *first; /* most recently used first */
    uint32_t count;
};

void prefix_fini(struct prefix *p);

/* Takes over what `s` has at the stages (s->id becomes 0); its tokens are copied. What is lost
 * or empty, or has a twin, is closed instead. */
void prefix_keep(struct prefix *p, struct hub *h, struct sequence *s);

/* The longest one that serves this prompt, marked as used; NULL when there is none. */
struct prefix_kept *prefix_find(struct prefix *p, const struct hub *h, const uint32_t *token,
                                uint32_t count);

/* Gives up the least recently used one that is not `spared`; false when there is none. */
bool prefix_evict(struct prefix *p, struct hub *h, const struct prefix_kept *spared);

#endif
