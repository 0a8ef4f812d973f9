/*
 * Threads, the clock and the signals that end a program.
 *
 * The quota of a container is a limit of its control group (v2) or of one above it. A program
 * that starts as many threads as the machine has cores is throttled there for most of every
 * period, so thread_cpus() looks.
 */
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"

#define CPUS_MOST 8192

static void *thread_main(void *context)
{
    struct thread *t = context;

    pthread_setname_np(pthread_self(), t->name);
    t->run(t->context);
    return NULL;
}

int thread_start(struct thread *t, const char *name, void (*run)(void *), void *context)
{
    /* Raised by the thread itself: blocked, they would end the process without a word. */
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    sigset_t all, before;

    snprintf(t->name, sizeof t->name, "%s", name);
    t->run = run;
    t->context = context;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&t->id, NULL, thread_main, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

void thread_join(struct thread *t)
{
    pthread_join(t->id, NULL);
}

static unsigned affinity_cpus(void)
{
    unsigned cpus = 1;
    size_t size = CPU_ALLOC_SIZE(CPUS_MOST);
    cpu_set_t *set = CPU_ALLOC(CPUS_MOST);

    if (set && sched_getaffinity(0, size, set) == 0)
        cpus = (unsigned)CPU_COUNT_S(size, set);
    CPU_FREE(set);
    return cpus;
}

/* The quota of one control group in CPUS, rounded up; `most` when it has none. */
static unsigned group_cpus(const char *group, unsigned most)
{
    char path[4200], *text;
    size_t length;
    unsigned long long quota, period;

    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
    if (file_read(path, 256, &text, &length) < 0)
        return most;
    int fields = sscanf(text, "%llu %llu", &quota, &period);
    free(text);
    if (fields != 2 || quota == 0 || period == 0)
        return most;
    unsigned long long cpus = (quota + period - 1) / period;
    return cpus < most ? (unsigned)cpus : most;
}

static unsigned quota_cpus(unsigned most)
{
    char *text;
    size_t length;

    if (file_read("/proc/self/cgroup", 65536, &text, &length) < 0)
        return most;
    char *line = !strncmp(text, "0::", 3) ? text : strstr(text, "\n0::");
    char *group = line ? strchr(line, '/') : NULL;
    if (group) {
        group[strcspn(group, "\n")] = '\0';
        if (strlen(group) < 4096)
            for (char *slash; (slash = strrchr(group, '/')); *slash = '\0')
                most = group_cpus(group, most);
    }
    free(text);
    return group_cpus("", most); /* what is mounted at the root may itself be a group's */
}

unsigned thread_cpus(void)
{
    unsigned cpus = quota_cpus(affinity_cpus());

    return cpus > 0 ? cpus : 1;
}

double thread_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void thread_block_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int thread_wait_signal(void)
{
    sigset_t set;
    int number;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    while (sigwait(&set, &number) != 0)
        ;
    return number;
}
