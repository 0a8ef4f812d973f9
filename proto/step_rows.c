/* The reader of Step: see the header. Sizes are checked before any pointer is made. */
#include "proto/step_rows.h"

#include <errno.h>
#include <math.h>

size_t step_rows_bytes(const struct shape *s, uint32_t layer, uint32_t rows)
{
    return (size_t)rows * step_rows_sources(s, layer) * s->hidden * sizeof(float);
}

size_t step_rows_reply_bytes(const struct shape *s, uint32_t layer_end, uint32_t rows,
                             uint32_t wanted)
{
    if (layer_end == s->layers)
        return (size_t)wanted * s->vocab * sizeof(float);
    return step_rows_bytes(s, layer_end, rows);
}

static const char *check_lengths(const Kapok__Step *h, const struct step_rows_limits *limits)
{
    size_t rows = h->n_sequence;
    if (h->n_position != rows || h->n_token != rows || h->n_logits != rows)
        return "Step: sequence, position, token and logits are not equally many";
    if (h->n_commit_sequence != h->n_commit_length)
        return "Step: commit_sequence and commit_length are not equally many";
    if (rows > limits->rows_most)
        return "Step: more rows than this stage takes";
    if (!rows && !h->n_commit_sequence)
        return "Step: neither rows nor commits";
    return NULL;
}

/* The row of the same sequence before row t, or t when there is none. */
static uint32_t row_before(const Kapok__Step *h, uint32_t t)
{
    for (uint32_t i = t; i-- > 0;)
        if (h->sequence[i] == h->sequence[t])
            return i;
    return t;
}

static const char *check_rows(const Kapok__Step *h, const struct shape *s)
{
    for (uint32_t t = 0; t < h->n_sequence; t++) {
        uint32_t before = row_before(h, t);
        if (h->token[t] >= s->vocab)
            return "Step: a token is not in the vocabulary";
        if (h->position[t] >= s->context)
            return "Step: a position is beyond the model's context";
        if (before < t && h->position[t] != h->position[before] + 1)
            return "Step: the rows of a sequence are not at consecutive positions";
    }
    for (size_t i = 0; i < h->n_commit_length; i++)
        if (h->commit_length[i] > s->context)
            return "Step: a commit is beyond the model's context";
    return NULL;
}

static const char *check_input(const struct msg *m)
{
    const float *x = (const float *)m->payload;
    for (size_t i = 0; i < m->payload_bytes / sizeof *x; i++)
        if (!isfinite(x[i]))
            return "Step: an input is not finite";
    return NULL;
}

static uint32_t count_wanted(const Kapok__Step *h)
{
    uint32_t wanted = 0;
    for (size_t t = 0; t < h->n_logits; t++)
        wanted += h->logits[t] != 0;
    return wanted;
}

int step_rows_open(struct step_rows *r, const struct msg *m, const struct shape *s,
                   const struct step_rows_limits *limits, const char **ret_why)
{
    const Kapok__Step *h = m->request->step;
    bool last = limits->layer_end == s->layers;
    const char *why = check_lengths(h, limits);
    if (!why)
        why = check_rows(h, s);
    if (!why && last && count_wanted(h) > limits->logits_most)
        why = "Step: more rows want logits than this stage takes";
    if (!why &&
        m->payload_bytes != step_rows_bytes(s, limits->layer_first, (uint32_t)h->n_sequence))
        why = "Step: the payload's size is not what the rows and the stage's layers make";
    if (!why)
        why = check_input(m);
    if (why) {
        *ret_why = why;
        return -EBADMSG;
    }
    *r = (struct step_rows){
        .number = h->number,
        .rows = (uint32_t)h->n_sequence,
        .wanted = last ? count_wanted(h) : 0,
        .sequence = h->sequence,
        .position = h->position,
        .token = h->token,
        .logits = h->logits,
        .commits = (uint32_t)h->n_commit_sequence,
        .commit_sequence = h->commit_sequence,
        .commit_length = h->commit_length,
        .sources = step_rows_sources(s, limits->layer_first),
        .input = limits->layer_first ? (const float *)m->payload : NULL,
    };
    return 0;
}
