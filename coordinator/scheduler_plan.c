/*
 * Which rows the next step has (see scheduler.h for the rules).
 *
 * Who gets rows moves to the end of the running list, so that those left out come first next
 * time. A generation's rows are consecutive and its logits rows too.
 */
#include "coordinator/scheduler_private.h"

struct plan {
    uint32_t rows, logits; /* room left */
    uint32_t drafts;       /* for each, so that nobody is left out for them */
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

/* Drafts for a generation that is decoding: the rest of an answer known already, or a guess. */
static void propose(struct scheduler *s, const struct plan *p, struct generation *g)
{
    uint32_t said = generation_length(g);
    uint32_t most = g->most - said - 1;

    most = most < p->drafts ? most : p->drafts;
    most = most < DRAFT_MOST ? most : DRAFT_MOST;
    if (said < g->foretold_count) {
        while (g->step.drafts < most && said + g->step.drafts < g->foretold_count) {
            g->step.draft[g->step.drafts] = g->foretold[said + g->step.drafts];
            g->step.drafts++;
        }
    } else if (s->options.speculate) {
        g->step.drafts =
            draft_propose(&g->draft, g->seq.token, g->seq.count, most, g->step.draft);
    }
}

static void plan_decoding(struct scheduler *s, struct plan *p)
{
    for (struct generation *g = s->running.first; g != NULL; g = g->next)
        if (pending(g) == 1 && p->rows > 0 && p->logits > 0) {
            propose(s, p, g);
            add_rows(s, p, g, 1);
        }
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
        if (rows == pending(g) && g->followers > 0)
            rows--; /* the others continue from just before the prompt's last token */
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

/* Rows each generation may add to its one without crowding anybody out. */
static uint32_t spare_each(const struct scheduler *s, const struct hub_limits *l)
{
    uint32_t n = s->running.count;
    uint32_t rows = l->rows_most / 2, logits = l->logits_most;

    if (n == 0 || rows <= n || logits <= n)
        return 0;
    rows = (rows - n) / n;
    logits = (logits - n) / n;
    return rows < logits ? rows : logits;
}

size_t scheduler_plan(struct scheduler *s)
{
    struct hub_limits limits;
    struct plan p = {0};

    hub_limits(s->hub, &limits);
    p.rows = limits.rows_most;
    p.logits = limits.logits_most;
    p.drafts = spare_each(s, &limits);
    hub_begin(s->hub);
    for (struct generation *g = s->running.first; g != NULL; g = g->next)
        g->step.rows = g->step.drafts = 0;
    plan_decoding(s, &p);
    plan_prefilling(s, &p);
    rotate(s);
    return hub_rows(s->hub);
}
