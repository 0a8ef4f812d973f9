/*
 * The scheduler's thread: admit, plan, run, settle.
 *
 * A generation is in exactly one list from its submission to its end: waiting (under the lock)
 * or running (the thread's own).
 */
#include "coordinator/scheduler.h"

#include <errno.h>
#include <stdlib.h>

#include "coordinator/scheduler_private.h"

void scheduler_list_add(struct scheduler_list *l, struct generation *g)
{
    g->next = NULL;
    g->prev = l->last;
    if (l->last != NULL)
        l->last->next = g;
    else
        l->first = g;
    l->last = g;
    l->count++;
}

void scheduler_list_remove(struct scheduler_list *l, struct generation *g)
{
    if (g->prev != NULL)
        g->prev->next = g->next;
    else
        l->first = g->next;
    if (g->next != NULL)
        g->next->prev = g->prev;
    else
        l->last = g->prev;
    l->count--;
}

static bool is_late(const struct generation *g)
{
    return g->deadline != 0 && thread_now() > g->deadline;
}

static bool is_wanted(const struct generation *g)
{
    return !is_late(g) && g->sink->wanted(g->owner);
}

/* How one that is not wanted ends. */
static enum generation_end unwanted_end(const struct generation *g)
{
    return is_late(g) && g->sink->wanted(g->owner) ? GENERATION_LATE : GENERATION_CANCELLED;
}

/* The hub asks: is it worth waiting on? */
static bool step_wanted(void *context)
{
    struct scheduler *s = context;
    uint32_t live = 0, dead = 0;

    if (atomic_load(&s->stopping))
        return false;
    if (s->admitting != NULL)
        return is_wanted(s->admitting);
    for (struct generation *g = s->running.first; g != NULL; g = g->next) {
        uint32_t rows = g->step.rows + g->step.drafts;

        if (is_wanted(g))
            live += rows;
        else
            dead += rows;
    }
    return dead == 0 || dead < live;
}

/* Choices that waited for this one's prompt run it themselves. */
static void free_followers(struct scheduler *s, const struct generation *leader)
{
    pthread_mutex_lock(&s->lock);
    for (struct generation *g = s->waiting.first; g != NULL && leader->followers > 0;
         g = g->next)
        if (g->leader == leader)
            g->leader = NULL;
    pthread_mutex_unlock(&s->lock);
}

static void count_end(struct scheduler *s, enum generation_end end)
{
    pthread_mutex_lock(&s->lock);
    s->held--;
    if (end == GENERATION_CANCELLED || end == GENERATION_LATE)
        s->status.cancelled++;
    else if (end == GENERATION_FAILED)
        s->status.failed++;
    else
        s->status.finished++;
    pthread_mutex_unlock(&s->lock);
}

void scheduler_end(struct scheduler *s, struct generation *g, enum generation_end how,
                   const char *reason)
{
    g->ended = thread_now();
    free_followers(s, g);
    count_end(s, how);
    g->sink->done(g->owner, how, reason);
}

void scheduler_finish(struct scheduler *s, struct generation *g, enum generation_end how,
                      const char *reason)
{
    scheduler_list_remove(&s->running, g);
    prefix_keep(&s->prefix, s->hub, &g->seq);
    scheduler_end(s, g, how, reason);
}

/* Drops what nobody wants, running or waiting. */
static void drop_unwanted(struct scheduler *s)
{
    struct scheduler_list dropped = {0};
    struct generation *g, *next;
    bool all = atomic_load(&s->stopping);

    for (g = s->running.first; g != NULL; g = next) {
        next = g->next;
        if (all || !is_wanted(g))
            scheduler_finish(s, g, unwanted_end(g), NULL);
    }
    pthread_mutex_lock(&s->lock);
    for (g = s->waiting.first; g != NULL; g = next) {
        next = g->next;
        if (all || !is_wanted(g)) {
            scheduler_list_remove(&s->waiting, g);
            scheduler_list_add(&dropped, g);
        }
    }
    pthread_mutex_unlock(&s->lock);
    for (g = dropped.first; g != NULL; g = next) {
        next = g->next;
        scheduler_end(s, g, unwanted_end(g), NULL);
    }
}

static void note_step(struct scheduler *s, size_t rows)
{
    pthread_mutex_lock(&s->lock);
    s->status.step_rows = rows;
    s->status.kept = s->prefix.count;
    s->step_began = thread_now();
    pthread_mutex_unlock(&s->lock);
}

static void fail_step(struct scheduler *s)
{
    struct generation *g, *next;

    for (g = s->running.first; g != NULL; g = next) {
        next = g->next;
        if (g->step.rows > 0)
            scheduler_finish(s, g, GENERATION_FAILED, hub_reason(s->hub));
    }
}

/* After the results are used: this asks the stages for more. */
static void keep_prompts(struct scheduler *s)
{
    for (struct generation *g = s->running.first; g != NULL; g = g->next)
        scheduler_keep_prompt(s, g);
}

/* One step; false when there is nothing to run. */
static bool run_step(struct scheduler *s)
{
    struct hub_result result;
    size_t rows = scheduler_plan(s);
    int error;

    if (rows == 0)
        return s->running.count > 0 && hub_wait(s->hub) == 0;
    note_step(s, rows);
    error = hub_run(s->hub, &result);
    if (error == 0) {
        scheduler_settle(s, &result);
        keep_prompts(s);
    } else if (error != -ECANCELED)
        fail_step(s);
    note_step(s, 0);
    return true;
}

static void wait_for_work(struct scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->waiting.count == 0 && !atomic_load(&s->stopping))
        pthread_cond_wait(&s->wake, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void scheduler_run(void *context)
{
    struct scheduler *s = context;

    while (!atomic_load(&s->stopping)) {
        drop_unwanted(s);
        scheduler_admit(s);
        if (!run_step(s))
            wait_for_work(s);
    }
    drop_unwanted(s);
}

int scheduler_open(struct scheduler **ret_scheduler, const struct scheduler_options *o)
{
    struct scheduler *s = calloc(1, sizeof *s);
    struct hub_options hub = {.links = o->links,
                              .stage = o->stage,
                              .stages = o->stages,
                              .shape = o->shape,
                              .wanted = step_wanted,
                              .context = s};
    int error;

    if (s == NULL)
        return -ENOMEM;
    s->options = *o;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    error = hub_open(&s->hub, &hub);
    if (error == 0)
        error = sampler_open(&s->sampler, o->shape->vocab);
    if (error != 0) {
        scheduler_close(s);
        return error;
    }
    *ret_scheduler = s;
    return 0;
}

int scheduler_start(struct scheduler *s)
{
    return thread_start(&s->thread, "scheduler", scheduler_run, s);
}

void scheduler_stop(struct scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->stopping, true);
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    thread_join(&s->thread);
}

void scheduler_close(struct scheduler *s)
{
    if (s == NULL)
        return;
    prefix_fini(&s->prefix);
    hub_close(s->hub);
    sampler_close(s->sampler);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

struct hub *scheduler_hub(const struct scheduler *s)
{
    return s->hub;
}

int scheduler_submit(struct scheduler *s, struct generation **g, size_t count)
{
    int error = 0;

    pthread_mutex_lock(&s->lock);
    if (atomic_load(&s->stopping))
        error = -EPIPE;
    else if (s->held + count > s->options.requests)
        error = -EAGAIN;
    for (size_t i = 0; i < count && error == 0; i++) {
        if (i > 0 && g[0]->prompt > 1) {
            g[i]->leader = g[0];
            g[0]->followers++;
        }
        scheduler_list_add(&s->waiting, g[i]);
    }
    if (error == 0)
        s->held += (uint32_t)count;
    if (error == -EAGAIN)
        s->status.refused++;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    return error;
}

void scheduler_status(struct scheduler *s, struct scheduler_status *ret_status)
{
    pthread_mutex_lock(&s->lock);
    *ret_status = s->status;
    ret_status->waiting = s->waiting.count;
    ret_status->running = s->held - s->waiting.count;
    ret_status->step_seconds = s->status.step_rows > 0 ? thread_now() - s->step_began : 0;
    pthread_mutex_unlock(&s->lock);
}
