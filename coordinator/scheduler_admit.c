/*
 * From waiting to running: room in the stages, and a beginning to continue from.
 *
 * First come, first served; only choices that wait for the first one of their request to run
 * the prompt are passed over. What is kept of finished generations gives way when room is
 * needed.
 */
#include <errno.h>
#include <string.h>

#include "coordinator/scheduler_private.h"

#define ADMIT_PROMPT_KEPT 32 /* shorter prompts are not worth a copy of the state */

static bool must_wait(const struct generation *g)
{
    return g->leader != NULL && g->leader->seq.committed + 1 < g->leader->prompt;
}

static struct generation *take_waiting(struct scheduler *s)
{
    struct generation *g;

    pthread_mutex_lock(&s->lock);
    for (g = s->waiting.first; g != NULL && must_wait(g); g = g->next)
        ;
    if (g != NULL)
        scheduler_list_remove(&s->waiting, g);
    pthread_mutex_unlock(&s->lock);
    return g;
}

static void put_back(struct scheduler *s, struct generation *g)
{
    pthread_mutex_lock(&s->lock);
    g->prev = NULL;
    g->next = s->waiting.first;
    if (g->next != NULL)
        g->next->prev = g;
    else
        s->waiting.last = g;
    s->waiting.first = g;
    s->waiting.count++;
    pthread_mutex_unlock(&s->lock);
}

static int fork_kept(struct scheduler *s, struct prefix_kept *k, struct sequence *into)
{
    int error = hub_sequence_commit(s->hub, &k->seq);

    if (error == 0)
        error = hub_sequence_fork(s->hub, &k->seq, into);
    while (error == -ENOSPC && prefix_evict(&s->prefix, s->hub, k))
        error = hub_sequence_fork(s->hub, &k->seq, into);
    return error;
}

/* From the first choice of the same request, or from a kept beginning. -ENOENT: there is none.
 */
static int continue_from(struct scheduler *s, struct generation *g)
{
    const struct generation *leader = g->leader;
    struct prefix_kept *k;

    if (leader != NULL && leader->seq.committed + 1 == leader->prompt)
        return hub_sequence_fork(s->hub, &leader->seq, &g->seq);
    k = prefix_find(&s->prefix, s->hub, g->seq.token, g->prompt);
    return k != NULL ? fork_kept(s, k, &g->seq) : -ENOENT;
}

static int open_somehow(struct scheduler *s, struct generation *g)
{
    int error = continue_from(s, g);

    if (error == 0 || error == -ECANCELED)
        return error;
    error = hub_sequence_open(s->hub, &g->seq);
    while (error == -ENOSPC && prefix_evict(&s->prefix, s->hub, NULL))
        error = hub_sequence_open(s->hub, &g->seq);
    return error;
}

static void begin_running(struct scheduler *s, struct generation *g)
{
    if (g->leader != NULL && g->leader->followers > 0)
        g->leader->followers--;
    g->leader = NULL;
    g->started = thread_now();
    g->cached = g->seq.standing;
    scheduler_list_add(&s->running, g);
    pthread_mutex_lock(&s->lock);
    s->status.admitted++;
    s->status.prompt_tokens += g->prompt;
    s->status.cached_tokens += g->cached;
    pthread_mutex_unlock(&s->lock);
}

/* False: not now. */
static bool admit_one(struct scheduler *s, struct generation *g)
{
    int error;

    s->admitting = g;
    error = open_somehow(s, g);
    s->admitting = NULL;
    if (error == -ENOSPC && s->running.count > 0) {
        put_back(s, g);
        return false;
    }
    if (error != 0)
        scheduler_end(s, g, error == -ECANCELED ? GENERATION_CANCELLED : GENERATION_FAILED,
                      hub_reason(s->hub));
    else
        begin_running(s, g);
    return true;
}

void scheduler_admit(struct scheduler *s)
{
    struct generation *g;

    while (!atomic_load(&s->stopping) && (g = take_waiting(s)) != NULL)
        if (!admit_one(s, g))
            return;
}

void scheduler_keep_prompt(struct scheduler *s, struct generation *g)
{
    struct sequence copy = {.token = g->seq.token, .room = g->prompt};
    bool waiting;
    int error;

    pthread_mutex_lock(&s->lock);
    waiting = s->waiting.count > 0;
    pthread_mutex_unlock(&s->lock);
    if (g->prompt_kept || waiting || g->prompt < ADMIT_PROMPT_KEPT ||
        g->seq.committed != g->prompt)
        return;
    g->prompt_kept = true;
    s->admitting = g;
    error = hub_sequence_fork(s->hub, &g->seq, &copy);
    if (error == -ENOSPC && prefix_evict(&s->prefix, s->hub, NULL))
        error = hub_sequence_fork(s->hub, &g->seq, &copy);
    if (error == 0)
        prefix_keep(&s->prefix, s->hub, &copy);
    s->admitting = NULL;
}
