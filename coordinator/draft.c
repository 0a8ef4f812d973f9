/* See the header. The lookup goes backwards over the whole sequence: microseconds per step. */
#include "coordinator/draft.h"

#include <stdbool.h>
#include <string.h>

#define DRAFT_LONG          4 /* newest tokens that should match; the shorter match is the fallback */
#define DRAFT_SHORT         2
#define DRAFT_FIRST         2  /* proposed at first */
#define DRAFT_PAUSE         16 /* tokens without proposals after the first failure */
#define DRAFT_PATIENCE_MOST 1024

void draft_init(struct draft *d)
{
    *d = (struct draft){.length = DRAFT_FIRST, .patience = DRAFT_PAUSE};
}

/* Where the tokens after the latest earlier occurrence of the last n begin; 0: nowhere. */
static uint32_t find(const uint32_t *token, uint32_t count, uint32_t n)
{
    const uint32_t *last = token + count - n;

    if (count <= n)
        return 0;
    for (uint32_t at = count - n; at-- > 0;)
        if (memcmp(token + at, last, n * sizeof *token) == 0)
            return at + n;
    return 0;
}

uint32_t draft_propose(const struct draft *d, const uint32_t *token, uint32_t count,
                       uint32_t most, uint32_t *ret_draft)
{
    uint32_t wanted = d->length < most ? d->length : most;
    uint32_t from;

    if (d->pause > 0 || wanted == 0)
        return 0;
    from = find(token, count, DRAFT_LONG);
    if (from == 0)
        from = find(token, count, DRAFT_SHORT);
    if (from == 0)
        return 0;
    /* What follows may run into what is being proposed: a period goes on. */
    for (uint32_t i = 0; i < wanted; i++)
        ret_draft[i] = from + i < count ? token[from + i] : ret_draft[from + i - count];
    return wanted;
}

void draft_learn(struct draft *d, uint32_t proposed, uint32_t accepted)
{
    if (d->pause > 0) {
        d->pause--;
        return;
    }
    if (proposed == 0)
        return;
    if (accepted == proposed) {
        d->length = 2 * d->length < DRAFT_MOST ? 2 * d->length : DRAFT_MOST;
        d->patience = DRAFT_PAUSE;
        return;
    }
    d->length = accepted > d->length / 2 ? accepted : d->length / 2;
    if (d->length > 0)
        return;
    d->length = 1;
    d->pause = d->patience;
    d->patience = 2 * d->patience < DRAFT_PATIENCE_MOST ? 2 * d->patience : DRAFT_PATIENCE_MOST;
}
