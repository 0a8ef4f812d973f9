/*
 * Links and their watcher: see the header.
 *
 * The watcher is the only thread of ours here. Ten times a second it looks at the deadlines of
 * the calls under way and at who should be greeted; greetings end into its own queue. States
 * change only in link_private_mark(), so the generation tells of every change.
 */
#include "proto/link.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/link_private.h"

#define WATCH_TICK      0.1 /* seconds */
#define GREET_DEADLINE  2.0
#define GREETINGS_MOST  1024
#define RECONNECT_FIRST 50  /* milliseconds; doubles up to the most */
#define RECONNECT_MOST  600 /* nng waits a random part of it: six dials in two seconds */

/* ---- state --------------------------------------------------------------------------------
 */

static void news(struct links *ls)
{
    ls->generation++;
    pthread_cond_broadcast(&ls->changed);
}

void link_private_mark(struct link *l, enum link_state state, const char *reason)
{
    if (l->status.state == state && !strcmp(l->status.reason, reason))
        return;
    l->status.state = state;
    snprintf(l->status.reason, sizeof l->status.reason, "%s", reason);
    if (state != LINK_UP)
        l->greet_at = 0;
    news(l->links);
}

static bool same_hello(const Kapok__Reply *a, const Kapok__Reply *b)
{
    size_t size = kapok__hello_reply__get_packed_size(a->hello);
    if (size != kapok__hello_reply__get_packed_size(b->hello))
        return false;
    uint8_t *bytes = malloc(2 * size + 1);
    if (!bytes)
        return false;
    kapok__hello_reply__pack(a->hello, bytes);
    kapok__hello_reply__pack(b->hello, bytes + size);
    bool same = !memcmp(bytes, bytes + size, size);
    free(bytes);
    return same;
}

/* Takes the reply over. */
static void set_hello(struct link *l, Kapok__Reply *answer)
{
    bool is_news = !l->answer || !same_hello(l->answer, answer);
    if (l->answer)
        kapok__reply__free_unpacked(l->answer, NULL);
    l->answer = answer;
    l->status.instance = answer->hello->instance;
    link_private_mark(l, LINK_UP, "");
    if (is_news)
        news(l->links);
}

/* ---- the watcher --------------------------------------------------------------------------
 */

static void greet(struct link *l)
{
    l->greeting_now = true;
    link_call_start(&l->greet);
}

static void greeting_ended(struct link *l)
{
    struct link_call *c = &l->greet;
    pthread_mutex_lock(&l->links->lock);
    l->greeting_now = false;
    l->greet_at = thread_now() + LINK_GREET;
    if (!c->error && c->reply.reply->hello) {
        set_hello(l, c->reply.reply);
        c->reply.reply = NULL;
    } else if (!c->error) {
        link_private_mark(l, LINK_REFUSED, "it answered Hello with something else");
    } else if (c->reply.reply) {
        link_private_mark(l, LINK_REFUSED, c->reason);
        l->greet_at = thread_now() + LINK_GREET;
    } else {
        l->greet_at = 0; /* nobody there: keep one greeting waiting for the connection */
    }
    pthread_mutex_unlock(&l->links->lock);
    link_call_release(c);
}

static void watch_silence(struct link *l, double now)
{
    if (l->status.state == LINK_UP && now - l->answered > LINK_SILENCE) {
        char reason[80];
        snprintf(reason, sizeof reason, "no answer for more than %.0f s", LINK_SILENCE);
        link_private_mark(l, LINK_SILENT, reason);
    }
}

static void watch_links(struct links *ls, double now)
{
    for (struct link *l = ls->first; l; l = l->next) {
        pthread_mutex_lock(&ls->lock);
        watch_silence(l, now);
        bool due = !l->greeting_now && now >= l->greet_at;
        pthread_mutex_unlock(&ls->lock);
        if (due)
            greet(l);
    }
}

static void watch_deadlines(struct links *ls, double now)
{
    pthread_mutex_lock(&ls->lock);
    for (struct call_state *s = ls->under_way; s; s = s->next) {
        int expected = 0;
        if (now - s->call->started > s->call->seconds)
            __atomic_compare_exchange_n(&s->stop, &expected, -ETIMEDOUT, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE))
            nng_aio_abort(s->aio, NNG_ETIMEDOUT);
    }
    pthread_mutex_unlock(&ls->lock);
}

static void watch(void *context)
{
    struct links *ls = context;
    void *call;
    for (;;) {
        int r = queue_take(&ls->greeted, WATCH_TICK, &call);
        if (r == -EPIPE)
            return;
        if (!r)
            greeting_ended(((struct link_call *)call)->owner);
        double now = thread_now();
        watch_deadlines(ls, now);
        watch_links(ls, now);
    }
}

/* ---- opening and closing ------------------------------------------------------------------
 */

int links_open(struct links **ret_links, const struct links_options *o)
{
    struct links *ls = calloc(1, sizeof *ls);
    if (!ls)
        return -ENOMEM;
    int r = queue_open(&ls->greeted, GREETINGS_MOST);
    if (r) {
        free(ls);
        return r;
    }
    ls->options = *o;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&ls->lock, NULL);
    pthread_cond_init(&ls->changed, &monotonic);
    pthread_cond_init(&ls->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *ret_links = ls;
    return 0;
}

int links_start(struct links *ls)
{
    int r = thread_start(&ls->watcher, "links", watch, ls);
    ls->started = !r;
    return r;
}

static void cancel_all(struct links *ls)
{
    pthread_mutex_lock(&ls->lock);
    while (ls->under_way) {
        struct timespec soon;
        for (struct call_state *s = ls->under_way; s; s = s->next) {
            __atomic_store_n(&s->stop, -ECANCELED, __ATOMIC_RELEASE);
            nng_aio_abort(s->aio, NNG_ECANCELED);
        }
        clock_gettime(CLOCK_MONOTONIC, &soon);
        soon.tv_nsec += 10000000;
        soon.tv_sec += soon.tv_nsec / 1000000000;
        soon.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&ls->ended, &ls->lock, &soon);
    }
    pthread_mutex_unlock(&ls->lock);
}

static void link_free(struct link *l)
{
    if (l->open) {
        link_call_close(&l->greet);
        nng_close(l->socket);
    }
    if (l->answer)
        kapok__reply__free_unpacked(l->answer, NULL);
    free(l->address);
    free(l);
}

void links_close(struct links *ls)
{
    if (!ls)
        return;
    queue_close(&ls->greeted);
    if (ls->started)
        thread_join(&ls->watcher);
    cancel_all(ls);
    while (ls->first) {
        struct link *l = ls->first;
        ls->first = l->next;
        link_free(l);
    }
    queue_free(&ls->greeted);
    pthread_cond_destroy(&ls->ended);
    pthread_cond_destroy(&ls->changed);
    pthread_mutex_destroy(&ls->lock);
    free(ls);
}

static int dial(struct link *l)
{
    int r = nng_req0_open(&l->socket);
    if (r)
        return link_private_errno(r);
    l->open = true;
    nng_socket_set_ms(l->socket, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
    nng_socket_set_size(l->socket, NNG_OPT_RECVMAXSZ,
                        l->links->options.payload_most + MSG_HEADER_MOST);
    nng_socket_set_ms(l->socket, NNG_OPT_RECONNMINT, RECONNECT_FIRST);
    nng_socket_set_ms(l->socket, NNG_OPT_RECONNMAXT, RECONNECT_MOST);
    r = nng_dial(l->socket, l->address, NULL, NNG_FLAG_NONBLOCK);
    return r ? link_private_errno(r) : link_call_open(&l->greet, l);
}

static void prepare_greeting(struct link *l)
{
    kapok__request__init(&l->greeting);
    kapok__hello__init(&l->hello);
    l->hello.role = (char *)(uintptr_t)l->links->options.role;
    l->greeting.body_case = KAPOK__REQUEST__BODY_HELLO;
    l->greeting.hello = &l->hello;
    l->greet.request = &l->greeting;
    l->greet.seconds = GREET_DEADLINE;
    l->greet.done = &l->links->greeted;
    l->greet.owner = l;
}

int links_add(struct links *ls, const char *address, struct link **ret_link, struct problems *p)
{
    int r = link_address_check(address, p);
    if (r)
        return r;
    struct link *l = calloc(1, sizeof *l);
    if (!l)
        return -ENOMEM;
    l->links = ls;
    l->answered = -1;
    snprintf(l->status.reason, sizeof l->status.reason, "it has not answered yet");
    l->address = strdup(address);
    r = l->address ? dial(l) : -ENOMEM;
    if (r) {
        problems_add(p, "address %s: cannot be dialled: %s", address, strerror(-r));
        link_free(l);
        return r;
    }
    prepare_greeting(l);
    l->next = ls->first;
    ls->first = l;
    *ret_link = l;
    return 0;
}

/* ---- looking ------------------------------------------------------------------------------
 */

uint64_t links_generation(struct links *ls)
{
    pthread_mutex_lock(&ls->lock);
    uint64_t g = ls->generation;
    pthread_mutex_unlock(&ls->lock);
    return g;
}

uint64_t links_wait(struct links *ls, uint64_t seen, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    double whole = floor(seconds);
    until.tv_sec += (time_t)whole;
    until.tv_nsec += (long)((seconds - whole) * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&ls->lock);
    while (ls->generation <= seen && !pthread_cond_timedwait(&ls->changed, &ls->lock, &until))
        ;
    uint64_t g = ls->generation;
    pthread_mutex_unlock(&ls->lock);
    return g;
}

const char *link_address(const struct link *l)
{
    return l->address;
}

void link_status(struct link *l, struct link_status *ret_status)
{
    pthread_mutex_lock(&l->links->lock);
    *ret_status = l->status;
    ret_status->age = l->answered < 0 ? INFINITY : thread_now() - l->answered;
    pthread_mutex_unlock(&l->links->lock);
}

const char *link_state_name(enum link_state s)
{
    static const char *const name[] = {
        [LINK_SILENT] = "silent", [LINK_UP] = "up", [LINK_REFUSED] = "refused"};
    return name[s];
}

const Kapok__HelloReply *link_hello_get(struct link *l)
{
    pthread_mutex_lock(&l->links->lock);
    return l->answer ? l->answer->hello : NULL;
}

void link_hello_put(struct link *l)
{
    pthread_mutex_unlock(&l->links->lock);
}
