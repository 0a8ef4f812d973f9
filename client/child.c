/* A supervised process: see the header. */
#include "client/child.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/thread.h"

#define PAUSE_FIRST 0.2 /* seconds */
#define PAUSE_MOST  10.0
#define RAN_WELL    60.0
#define LISTENING   "listening "
#define SCHEME_HTTP "http://"

void child_init(struct child *c, const char *name, const char *program, const char *listen)
{
    *c = (struct child){.output = -1, .pause = PAUSE_FIRST};
    snprintf(c->name, sizeof c->name, "%s", name);
    child_add(c, "%s", program);
    child_add(c, "--listen");
    child_add(c, "%s", listen);
}

void child_fini(struct child *c)
{
    for (unsigned i = 0; i < c->arguments; i++)
        free(c->argument[i]);
    if (c->arguments && c->output >= 0)
        close(c->output);
}

void child_add(struct child *c, const char *format, ...)
{
    va_list arguments;
    assert(c->arguments < CHILD_ARGUMENTS);
    va_start(arguments, format);
    if (vasprintf(&c->argument[c->arguments], format, arguments) < 0)
        abort();
    va_end(arguments);
    c->arguments++;
}

const char *child_address(const struct child *c)
{
    return c->argument[CHILD_LISTEN];
}

/* In the new process. */
static void become(struct child *c, int output, int log, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0); /* Ctrl-C is the parent's business: it stops us in order */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    dup2(output, 1);
    dup2(log, 2);
    execv(c->argument[0], c->argument);
    dprintf(2, "%s: cannot be started: %s\n", c->argument[0], strerror(errno));
    _exit(127);
}

int child_start(struct child *c, const struct rundir *d)
{
    char path[RUNDIR_PATH + 64], file[64], text[32];
    int ends[2];
    snprintf(file, sizeof file, "%s.log", c->name);
    int log = open(rundir_file(d, file, path), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0)
        return -errno;
    c->log_from = lseek(log, 0, SEEK_END);
    if (pipe2(ends, O_CLOEXEC)) {
        close(log);
        return -EMFILE;
    }
    pid_t parent = getpid();
    c->pid = fork();
    if (!c->pid)
        become(c, ends[1], log, parent);
    close(ends[1]);
    close(log);
    if (c->pid < 0) {
        close(ends[0]);
        c->pid = 0;
        return -EAGAIN;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    c->output = ends[0];
    c->line_bytes = 0;
    c->listening = false;
    c->starts++;
    c->started = thread_now();
    snprintf(file, sizeof file, "%s.pid", c->name);
    snprintf(text, sizeof text, "%d\n", c->pid);
    return rundir_write(d, file, text);
}

/* Keeps what was told as the argument of --listen; an http url without its scheme. */
static void take_address(struct child *c, const char *address)
{
    size_t scheme = strlen(SCHEME_HTTP);
    if (!strncmp(address, SCHEME_HTTP, scheme))
        address += scheme;
    char *copy = strdup(address);
    if (!copy)
        abort();
    free(c->argument[CHILD_LISTEN]);
    c->argument[CHILD_LISTEN] = copy;
    c->listening = c->ever_listened = true;
}

bool child_read(struct child *c)
{
    bool was = c->listening;
    char byte;
    while (c->output >= 0) {
        ssize_t n = read(c->output, &byte, 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n <= 0) {
            close(c->output);
            c->output = -1;
            break;
        }
        if (byte != '\n') {
            if (c->line_bytes + 1 < sizeof c->line)
                c->line[c->line_bytes++] = byte;
            continue;
        }
        c->line[c->line_bytes] = 0;
        c->line_bytes = 0;
        if (!strncmp(c->line, LISTENING, strlen(LISTENING)))
            take_address(c, c->line + strlen(LISTENING));
        break; /* one line a call: more makes the pipe readable again */
    }
    return c->listening && !was;
}

/* Log lines begin with the year. */
void child_print_memory(const struct child *c, const struct rundir *d, FILE *out)
{
    char path[RUNDIR_PATH + 64], file[64], *line = NULL;
    size_t room = 0;
    snprintf(file, sizeof file, "%s.log", c->name);
    FILE *log = fopen(rundir_file(d, file, path), "r");
    if (!log)
        return;
    bool first = true;
    fseek(log, c->log_from, SEEK_SET);
    while (getline(&line, &room, log) > 0) {
        if (isdigit((unsigned char)line[0]))
            continue;
        if (first)
            fprintf(out, "memory of %s\n", c->name);
        first = false;
        fprintf(out, "  %s", line);
    }
    free(line);
    fclose(log);
}

void child_ended(struct child *c, const struct rundir *d)
{
    char file[64];
    double now = thread_now();
    snprintf(file, sizeof file, "%s.pid", c->name);
    rundir_remove(d, file);
    if (c->output >= 0)
        close(c->output);
    c->output = -1;
    c->pid = 0;
    c->listening = false;
    if (now - c->started > RAN_WELL)
        c->pause = PAUSE_FIRST;
    c->again_at = now + c->pause;
    c->pause = 2 * c->pause < PAUSE_MOST ? 2 * c->pause : PAUSE_MOST;
}
