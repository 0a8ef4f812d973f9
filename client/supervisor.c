/* Supervision: see the header. */
#include "client/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"
#include "client/command.h"

#define LOOK_EVERY   100  /* milliseconds */
#define STOP_SECONDS 15.0 /* then SIGKILL */
#define TAIL_BYTES   3000

/* ---- telling ------------------------------------------------------------------------------
 */

static void how_it_ended(int status, char *buf, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(buf, size, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(buf, size, "exit code %d", WEXITSTATUS(status));
}

/* The end of a child's log, so that nobody has to look for it. */
static void print_log_tail(const struct supervisor *s, const struct child *c)
{
    char path[RUNDIR_PATH + 64], name[48], text[TAIL_BYTES + 1];
    snprintf(name, sizeof name, "%s.log", c->name);
    FILE *f = fopen(rundir_file(s->rundir, name, path), "r");
    if (!f)
        return;
    if (fseek(f, -TAIL_BYTES, SEEK_END))
        rewind(f);
    size_t n = fread(text, 1, TAIL_BYTES, f);
    fclose(f);
    fprintf(stderr, "%.*s", (int)n, text);
}

static void tell_listening(const struct supervisor *s, const struct child *c)
{
    if (c->starts == 1)
        child_print_memory(c, s->rundir, stderr);
    log_info("listening name=%s address=%s pid=%d", c->name, child_address(c), c->pid);
}

/* ---- starting -----------------------------------------------------------------------------
 */

static void start_child(struct supervisor *s, struct child *c)
{
    int r = child_start(c, s->rundir);
    if (r) {
        log_error("cannot start a process name=%s error=\"%s\"", c->name, strerror(-r));
        s->stopping = true;
        s->result = COMMAND_FAILED;
    }
}

static bool all_listened(struct supervisor *s, unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++)
        if (!layout_child(s->layout, i)->ever_listened)
            return false;
    return true;
}

/* Starts the next group when everybody before it listens. */
static void start_next(struct supervisor *s)
{
    struct layout *l = s->layout;
    unsigned group[] = {0, l->expertds, l->expertds + l->stages, l->expertds + l->stages + 1};
    for (unsigned g = 0; g < 3; g++) {
        if (s->started != group[g] || !all_listened(s, 0, s->started))
            continue;
        if (g == 1)
            layout_stages(l, s->rundir);
        if (g == 2)
            layout_coordinator(l, s->rundir);
        for (; s->started < group[g + 1] && !s->stopping; s->started++)
            start_child(s, layout_child(l, s->started));
        return;
    }
}

static void start_again(struct supervisor *s)
{
    double now = thread_now();
    for (unsigned i = 0; i < s->started && !s->stopping; i++) {
        struct child *c = layout_child(s->layout, i);
        if (!c->pid && now >= c->again_at)
            start_child(s, c);
    }
}

/* ---- ending -------------------------------------------------------------------------------
 */

static void child_died(struct supervisor *s, struct child *c, int status)
{
    char how[80];
    how_it_ended(status, how, sizeof how);
    child_ended(c, s->rundir);
    if (s->stopping)
        return;
    if (c->ever_listened) {
        log_warn("a process died, it is started again name=%s end=\"%s\" seconds=%.1f", c->name,
                 how, c->again_at - thread_now());
        return;
    }
    log_error("a process could not start name=%s end=\"%s\"; its log ends with", c->name, how);
    print_log_tail(s, c);
    s->stopping = true;
    s->result = COMMAND_FAILED;
}

static void reap(struct supervisor *s)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (unsigned i = 0; i < s->started; i++)
            if (layout_child(s->layout, i)->pid == pid)
                child_died(s, layout_child(s->layout, i), status);
}

static bool any_runs(struct supervisor *s, unsigned first, unsigned end)
{
    for (unsigned i = first; i < end && i < s->started; i++)
        if (layout_child(s->layout, i)->pid)
            return true;
    return false;
}

static void stop_group(struct supervisor *s, unsigned first, unsigned end)
{
    double until = thread_now() + STOP_SECONDS;
    int with = SIGTERM;
    for (; any_runs(s, first, end); reap(s)) {
        for (unsigned i = first; with && i < end && i < s->started; i++)
            if (layout_child(s->layout, i)->pid)
                kill(layout_child(s->layout, i)->pid, with);
        with = 0;
        usleep(10000);
        if (thread_now() > until) {
            log_warn("processes did not stop within %.0f s, killing them", STOP_SECONDS);
            with = SIGKILL;
            until += STOP_SECONDS;
        }
    }
}

static void stop_all(struct supervisor *s)
{
    struct layout *l = s->layout;
    unsigned stages = l->expertds, coordinator = l->expertds + l->stages;
    s->stopping = true;
    stop_group(s, coordinator, coordinator + 1);
    stop_group(s, stages, coordinator);
    stop_group(s, 0, stages);
}

/* ---- the loop -----------------------------------------------------------------------------
 */

static void take_signals(struct supervisor *s)
{
    struct signalfd_siginfo info;
    while (read(s->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            continue; /* reap() looks anyway */
        log_info("stopping signal=%u", info.ssi_signo);
        s->stopping = true;
    }
}

static void look_around(struct supervisor *s)
{
    struct pollfd f[2 + LAYOUT_EXPERTDS + LAYOUT_STAGES] = {{s->signals, POLLIN, 0}};
    for (unsigned i = 0; i < s->started; i++)
        f[1 + i] = (struct pollfd){layout_child(s->layout, i)->output, POLLIN, 0};
    poll(f, 1 + s->started, LOOK_EVERY);
    if (f[0].revents)
        take_signals(s);
    for (unsigned i = 0; i < s->started; i++) {
        struct child *c = layout_child(s->layout, i);
        if (f[1 + i].revents && child_read(c))
            tell_listening(s, c);
    }
    reap(s);
}

static int open_signals(struct supervisor *s)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    s->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return s->signals < 0 ? -errno : 0;
}

int supervisor_run(struct supervisor *s)
{
    int r = open_signals(s);
    if (r) {
        log_error("no signals: %s", strerror(-r));
        return COMMAND_FAILED;
    }
    while (!s->stopping) {
        start_next(s);
        look_around(s);
        start_again(s);
        struct child *c = &s->layout->coordinator;
        if (!s->stopping && c->listening) {
            char url[320];
            snprintf(url, sizeof url, "http://%s", child_address(c));
            s->tick(s->context, url);
        }
    }
    stop_all(s);
    close(s->signals);
    return s->result;
}
