/*
 * Which rows the next step has (see scheduler.h for the rules).
 *
 * Who gets rows moves to the end of the running list, so that those left out come first next
 * time. A generation's rows are consecutive and its logits rows too.
 */
#include "coordinator/scheduler_private.h"

struct plan {
    uint32_t rows, logits; /* room left */
    size_t next_logits;
};

static uint32_t pending(const struct generation *g)
{
    return g->seq.count - g->seq.standing;
}

static void add_rows(struct scheduler *s, struct plan *p, struct generation *g, uint32_t rows)
{
    bool last = rows == pending(g);
    uint32_t at = g->seq.standing;

    g->step.rows = rows;
    g->step.wants_logits = last;
    g->step.logits = p->next_logits;
    for (uint32_t i = 0; i < rows; i++)
        hub_row(s->hub, &g->seq, at + i, g->seq.token[at + i], last && i + 1 == rows);
    for (uint32_t i = 0; i < g->step.drafts; i++)
        hub_row(s->hub, &g->seq, at + rows + i, g->step.draft[i], true);
    p->rows -= rows + g->step.drafts;
    if (last) {
        p->logits -= 1 + g->step.drafts;
        p->next_logits += 1 + g->step.drafts;
    }
}

static void plan_decoding(struct scheduler *s, struct plan *p)
{
    for (struct generation *g = s->running.first; g != NULL; g = g->next)
        if (pending(g) == 1 && p->rows > 0 && p->logits > 0)
            add_rows(s, p, g, 1);
}

static uint32_t count_prefilling(const struct scheduler *s)
{
    uint32_t n = 0;

    for (struct generation *g = s->running.first; g != NULL; g = g->next)
        n += pending(g) > 1;
    return n;
}

static void plan_prefilling(struct scheduler *s, struct plan *p)
{
    uint32_t left = s->options.prefill_chunk < p->rows ? s->options.prefill_chunk : p->rows;
    uint32_t sharers = count_prefilling(s);

    for (struct generation *g = s->running.first; g != NULL && left > 0; g = g->next) {
        uint32_t share, rows = pending(g);

        if (rows <= 1)
            continue;
        share = left / sharers > 0 ? left / sharers : 1;
        sharers--;
        if (rows > share)
            rows = share;
        if (rows == pending(g) && p->logits == 0)
            continue;
        add_rows(s, p, g, rows);
        left -= rows;
    }
}

/* Served ones to the end, in their order. */
static void rotate(struct scheduler *s)
{
    struct generation *stop = s->running.last;
    struct generation *g = s->running.first;

    while (g != NULL) {
        struct generation *next = g == stop ? NULL : g->next;

        if (g->step.rows > 0) {
            scheduler_list_remove(&s->running, g);
            scheduler_list_add(&s->running, g);
        }
        g = next;
    }
}

size_t scheduler_plan(struct scheduler *s)
{
    struct hub_limits limits;
    struct plan p = {0};

    hub_limits(s->hub, &limits);
    p.rows = limits.rows_most;
    p.logits = limits.logits_most;
    hub_begin(s->hub);
    for (struct generation *g = s->running.first; g != NULL; g = g->next)
        g->step.rows = g->step.drafts = 0;
    plan_decoding(s, &p);
    plan_prefilling(s, &p);
    rotate(s);
    return hub_rows(s->hub);
}
