/*
 * After a step: sampling, then making the tokens durable, then telling them.
 *
 * Drafts are judged by sampling: the token after a row is drawn as always, and the next draft
 * stands only when it is that very token. What was drawn after the last row that stands is new.
 */
#include <stdio.h>

#include "coordinator/scheduler_private.h"

static const float *logits_row(const struct scheduler *s, const struct hub_result *r,
                               const struct generation *g, uint32_t i)
{
    return r->logits + (g->step.logits + i) * s->options.shape->vocab;
}

/* Draws tokens for one generation; they are known, not told yet. */
static void draw(struct scheduler *s, const struct hub_result *r, struct generation *g)
{
    for (uint32_t i = 0; i <= g->step.drafts; i++) {
        const uint32_t *said = g->seq.token + g->prompt;
        uint32_t token = sampler_pick(s->sampler, &g->sampling, logits_row(s, r, g, i),
                                      g->seq.count, said, generation_length(g));

        g->step.fresh[g->step.freshes++] = token;
        g->seq.token[g->seq.count++] = token;
        if (generation_length(g) == g->most || (int32_t)token == s->options.shape->end_token)
            break;
        if (i == g->step.drafts || g->step.draft[i] != token)
            break;
        g->seq.standing++;
        g->accepted++;
    }
    g->drafted += g->step.drafts;
    draft_learn(&g->draft, g->step.drafts, g->step.freshes - 1);
}

static void advance(struct scheduler *s, const struct hub_result *r, struct generation *g)
{
    g->seq.standing += g->step.rows;
    g->step.freshes = 0;
    g->steps++;
    g->trunk_bytes += r->trunk_bytes;
    g->expert_bytes += r->expert_bytes;
    if (!g->step.wants_logits)
        return;
    draw(s, r, g);
    if (g->first == 0)
        g->first = thread_now();
    if (g->sink->record != NULL)
        g->sink->record(g->owner, g->step.fresh, g->step.freshes);
}

static void count_drafts(struct scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    for (struct generation *g = s->running.first; g != NULL; g = g->next) {
        if (g->step.rows == 0 || !g->step.wants_logits)
            continue;
        s->status.drafted += g->step.drafts;
        s->status.accepted += g->step.freshes - 1;
    }
    pthread_mutex_unlock(&s->lock);
}

/* Tells one generation's new tokens; ends it when one of them is the last. */
static void tell(struct scheduler *s, const struct hub_result *r, struct generation *g)
{
    uint32_t before = generation_length(g) - g->step.freshes;

    for (uint32_t i = 0; i < g->step.freshes; i++) {
        const float *logits = logits_row(s, r, g, i);
        uint32_t token = g->step.fresh[i];
        bool is_end = (int32_t)token == s->options.shape->end_token;

        g->told++;
        digest_add(&g->digest, logits, s->options.shape->vocab);
        pthread_mutex_lock(&s->lock);
        s->status.generated_tokens++;
        pthread_mutex_unlock(&s->lock);
        if (g->sink->token(g->owner, token, logits, is_end) || is_end) {
            scheduler_finish(s, g, GENERATION_STOP, NULL);
            return;
        }
        if (before + i + 1 == g->most) {
            scheduler_finish(s, g, GENERATION_LENGTH, NULL);
            return;
        }
    }
}

void scheduler_settle(struct scheduler *s, const struct hub_result *r)
{
    struct generation *g, *next;
    int error = 0;

    for (g = s->running.first; g != NULL; g = g->next)
        if (g->step.rows > 0)
            advance(s, r, g);
    count_drafts(s);
    if (s->options.sync != NULL)
        error = s->options.sync(s->options.context);
    for (g = s->running.first; g != NULL; g = next) {
        next = g->next;
        if (g->step.rows == 0 || !g->step.wants_logits)
            continue;
        if (error != 0 && g->sink->record != NULL)
            scheduler_finish(s, g, GENERATION_FAILED, "the journal cannot be written");
        else
            tell(s, r, g);
    }
}
