/*
 * Sequences in the stages: opening, copying, closing, and bringing back what a stage has lost.
 *
 * Closing never waits: the id goes to the doomed, which are closed before the next thing is
 * asked of the stages. So a request can end while a stage is away.
 */
#include <errno.h>

#include "coordinator/hub_private.h"

#define SEQUENCE_ATTEMPTS 16 /* a stage that forgets so often in a row is broken */

static int take_id(struct hub *h, struct sequence *s)
{
    struct hub_limits limits;

    hub_limits(h, &limits);
    if (h->free_ids > 0)
        s->id = h->free_id[--h->free_ids];
    else if (h->used_ids < limits.sequences_most)
        s->id = ++h->used_ids;
    else
        return hub_fail(h, -ENOSPC, "all %u sequences are in use", limits.sequences_most);
    return 0;
}

void hub_sequence_close(struct hub *h, struct sequence *s)
{
    if (s->id == 0)
        return;
    h->doomed_id[h->doomed_ids++] = s->id;
    s->id = 0;
    s->standing = s->committed = 0;
}

int hub_sequence_announce(struct hub *h, struct sequence *s)
{
    Kapok__Request request = KAPOK__REQUEST__INIT;
    Kapok__Open body = KAPOK__OPEN__INIT;

    request.body_case = KAPOK__REQUEST__BODY_OPEN;
    request.open = &body;
    body.sequence = s->id;
    body.positions = s->room;
    for (size_t i = 0; i < h->options.stages; i++) {
        int error = hub_call(h, i, &request, NULL, 0);

        hub_let_go(&h->stage[i]);
        if (error != 0)
            return error;
    }
    s->epoch = h->epoch;
    return 0;
}

static int announce_fork(struct hub *h, const struct sequence *from, struct sequence *s)
{
    Kapok__Request request = KAPOK__REQUEST__INIT;
    Kapok__Fork body = KAPOK__FORK__INIT;

    request.body_case = KAPOK__REQUEST__BODY_FORK;
    request.fork = &body;
    body.from = from->id;
    body.to = s->id;
    body.positions = s->room;
    for (size_t i = 0; i < h->options.stages; i++) {
        int error = hub_call(h, i, &request, NULL, 0);

        hub_let_go(&h->stage[i]);
        if (error != 0)
            return error;
    }
    s->epoch = h->epoch;
    return 0;
}

int hub_sequence_open(struct hub *h, struct sequence *s)
{
    int error = 0;

    for (unsigned attempt = 0; attempt < SEQUENCE_ATTEMPTS; attempt++) {
        error = hub_settle(h);
        if (error == 0 && s->id == 0)
            error = take_id(h, s);
        if (error == 0)
            error = hub_sequence_announce(h, s);
        if (error != -ESTALE)
            break;
    }
    s->standing = s->committed = 0;
    if (error != 0)
        hub_sequence_close(h, s);
    return error;
}

int hub_sequence_fork(struct hub *h, const struct sequence *from, struct sequence *s)
{
    int error = hub_settle(h);

    if (error != 0)
        return error;
    if (hub_sequence_stale(h, from))
        return hub_fail(h, -ESTALE, "the sequence to continue from is lost");
    error = take_id(h, s);
    if (error == 0)
        error = announce_fork(h, from, s);
    if (error != 0) {
        hub_sequence_close(h, s);
        return error;
    }
    s->standing = s->committed = from->committed;
    return 0;
}

bool hub_sequence_stale(const struct hub *h, const struct sequence *s)
{
    return s->id == 0 || s->epoch != h->epoch;
}

int hub_sequence_replay(struct hub *h, struct sequence *s)
{
    struct hub_limits limits;
    int error = hub_sequence_announce(h, s);

    hub_limits(h, &limits);
    if (limits.rows_most == 0)
        return -ESTALE;
    for (uint32_t at = 0; at < s->standing && error == 0;) {
        uint32_t end =
            s->standing - at < limits.rows_most ? s->standing : at + limits.rows_most;
        struct hub_result result;

        hub_batch_begin(&h->replay);
        for (uint32_t i = at; i < end; i++)
            hub_batch_row(&h->replay, s, i, s->token[i], false);
        error = hub_chain(h, &h->replay, &result);
        at = end;
    }
    if (error != 0) {
        s->epoch = 0;
        return error;
    }
    pthread_mutex_lock(&h->lock);
    h->counts.replayed++;
    pthread_mutex_unlock(&h->lock);
    return 0;
}
