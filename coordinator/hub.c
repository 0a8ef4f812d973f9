/*
 * The hub's own state: its stages, what they allow, what is missing, which epoch it is.
 */
#include "coordinator/hub.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/thread.h"
#include "coordinator/hub_private.h"

int hub_fail(struct hub *h, int error, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    vsnprintf(h->reason, sizeof h->reason, format, values);
    va_end(values);
    return error;
}

const char *hub_reason(const struct hub *h)
{
    return h->reason;
}

int hub_open(struct hub **ret_hub, const struct hub_options *o)
{
    struct hub *h;
    int error;

    if (o->stages == 0 || o->stages > HUB_STAGES)
        return -EINVAL;
    h = calloc(1, sizeof *h);
    if (h == NULL)
        return -ENOMEM;
    h->options = *o;
    pthread_mutex_init(&h->lock, NULL);
    if (getrandom(&h->number, sizeof h->number, 0) != sizeof h->number)
        h->number = (uint64_t)(thread_now() * 1e9);
    h->number &= ~(uint64_t)0 >> 1;
    error = queue_open(&h->done, 4 * o->stages);
    for (size_t i = 0; i < o->stages && error == 0; i++) {
        h->stage[i].link = o->stage[i];
        error = link_call_open(&h->stage[i].call, o->stage[i]);
        if (error == 0)
            error = link_call_open(&h->stage[i].stop, o->stage[i]);
    }
    if (error != 0) {
        hub_close(h);
        return error;
    }
    *ret_hub = h;
    return 0;
}

void hub_close(struct hub *h)
{
    if (h == NULL)
        return;
    for (size_t i = 0; i < h->options.stages; i++) {
        hub_let_go(&h->stage[i]);
        if (h->stage[i].call.private_state != NULL)
            link_call_close(&h->stage[i].call);
        if (h->stage[i].stop.private_state != NULL)
            link_call_close(&h->stage[i].stop);
    }
    if (h->done.item != NULL)
        queue_free(&h->done);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

size_t hub_stages(const struct hub *h)
{
    return h->options.stages;
}

struct link *hub_stage(const struct hub *h, size_t stage)
{
    return h->stage[stage].link;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Narrows `l` by one stage's hello; false when there is none. */
static bool narrow(struct link *link, struct hub_limits *l, bool last)
{
    const Kapok__HelloReply *hello = link_hello_get(link);
    const Kapok__TrunkServes *t = hello != NULL ? hello->trunk : NULL;

    if (t != NULL) {
        l->rows_most = least(l->rows_most, t->rows_most);
        l->sequences_most = least(l->sequences_most, t->sequences_most);
        if (t->positions_most < l->positions_most)
            l->positions_most = t->positions_most;
        if (last)
            l->logits_most = least(l->logits_most, t->logits_most);
    }
    link_hello_put(link);
    return t != NULL;
}

void hub_limits(struct hub *h, struct hub_limits *ret_limits)
{
    struct hub_limits l = {HUB_ROWS, HUB_ROWS, HUB_SEQUENCES, UINT64_MAX};
    size_t stages = h->options.stages;

    memset(ret_limits, 0, sizeof *ret_limits);
    for (size_t i = 0; i < stages; i++)
        if (!narrow(h->stage[i].link, &l, i + 1 == stages))
            return;
    *ret_limits = l;
}

/* One stage's share of hub_missing(): *layer is where it has to begin, and moves on. */
static bool stage_missing(struct hub *h, size_t i, uint32_t *layer, char *text, size_t size)
{
    struct link *link = h->stage[i].link;
    const Kapok__HelloReply *hello;
    const Kapok__TrunkServes *t;
    struct link_status status;
    bool missing = true;

    link_status(link, &status);
    if (status.state != LINK_UP) {
        snprintf(text, size, "trunk stage %zu at %s is %s: %s", i, link_address(link),
                 link_state_name(status.state), status.reason);
        return true;
    }
    hello = link_hello_get(link);
    t = hello != NULL ? hello->trunk : NULL;
    if (t == NULL)
        snprintf(text, size, "%s answers, but it is no trunk", link_address(link));
    else if (t->layer_first != *layer)
        snprintf(text, size, "trunk stage %zu at %s begins with layer %u where %u is expected",
                 i, link_address(link), t->layer_first, *layer);
    else if (!t->ready)
        snprintf(text, size, "trunk stage %zu at %s is not ready: %s", i, link_address(link),
                 t->missing);
    else
        missing = false;
    if (t != NULL)
        *layer = t->layer_end;
    link_hello_put(link);
    return missing;
}

bool hub_missing(struct hub *h, char *ret_sentence, size_t size)
{
    uint32_t layer = 0;

    for (size_t i = 0; i < h->options.stages; i++)
        if (stage_missing(h, i, &layer, ret_sentence, size))
            return true;
    if (layer == h->options.shape->layers)
        return false;
    snprintf(ret_sentence, size, "the trunk stages end before layer %u of %u", layer,
             h->options.shape->layers);
    return true;
}

int hub_wait(struct hub *h)
{
    char why[512];

    while (hub_missing(h, why, sizeof why)) {
        uint64_t seen = links_generation(h->options.links);

        if (!h->options.wanted(h->options.context))
            return hub_fail(h, -ECANCELED, "not wanted any more while waiting: %s", why);
        links_wait(h->options.links, seen, HUB_POLL);
    }
    return 0;
}

void hub_new_epoch(struct hub *h)
{
    for (size_t i = 0; i < h->options.stages; i++) {
        struct link_status status;

        link_status(h->stage[i].link, &status);
        h->stage[i].instance = status.instance;
    }
    h->epoch++;
}

static bool instances_differ(struct hub *h)
{
    for (size_t i = 0; i < h->options.stages; i++) {
        struct link_status status;

        link_status(h->stage[i].link, &status);
        if (status.instance != h->stage[i].instance)
            return true;
    }
    return false;
}

/* Closes one id in every stage. */
static int close_everywhere(struct hub *h, uint64_t id)
{
    Kapok__Request request = KAPOK__REQUEST__INIT;
    Kapok__Close body = KAPOK__CLOSE__INIT;

    request.body_case = KAPOK__REQUEST__BODY_CLOSE;
    request.close = &body;
    body.sequence = id;
    for (size_t i = 0; i < h->options.stages; i++) {
        int error = hub_call(h, i, &request, NULL, 0);

        hub_let_go(&h->stage[i]);
        if (error == -ESTALE || error == -ECANCELED)
            return error;
    }
    return 0;
}

/* What a predecessor of this process may have left open. */
static int close_inherited(struct hub *h)
{
    struct hub_limits limits;
    int error = 0;

    hub_limits(h, &limits);
    for (uint64_t id = 1; id <= limits.sequences_most && error == 0; id++)
        error = close_everywhere(h, id);
    return error;
}

static int close_doomed(struct hub *h)
{
    while (h->doomed_ids > 0) {
        int error = close_everywhere(h, h->doomed_id[h->doomed_ids - 1]);

        if (error != 0)
            return error;
        h->free_id[h->free_ids++] = h->doomed_id[--h->doomed_ids];
    }
    return 0;
}

int hub_settle(struct hub *h)
{
    for (;;) {
        int error = hub_wait(h);

        if (error != 0)
            return error;
        if (h->epoch == 0 || instances_differ(h)) {
            bool first = h->epoch == 0;

            hub_new_epoch(h);
            error = first ? close_inherited(h) : 0;
            if (error != 0)
                h->epoch = 0;
        }
        if (error == 0)
            error = close_doomed(h);
        if (error != -ESTALE)
            return error;
    }
}

void hub_counts(struct hub *h, struct hub_counts *ret_counts)
{
    pthread_mutex_lock(&h->lock);
    *ret_counts = h->counts;
    pthread_mutex_unlock(&h->lock);
}
