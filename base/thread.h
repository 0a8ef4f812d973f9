/* Named threads. Started in main.c and listed there; stop means join. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

struct thread {
    pthread_t id;
    char name[16];
    void (*run)(void *context);
    void *context;
};

/* All signals but those a thread raises by its own fault (SIGSEGV and the like) are blocked in
 * the new thread: main waits for them. `t` must outlive the thread; the name is cut to 15
 * bytes. -EAGAIN when the system has no more threads. */
int thread_start(struct thread *t, const char *name, void (*run)(void *), void *context);
void thread_join(struct thread *t);

/* CPUs this process may run on (affinity and cgroup quota), at least 1. */
unsigned thread_cpus(void);

/* Seconds of the monotonic clock. */
double thread_now(void);

/* Waits for SIGINT or SIGTERM (blocked in all threads by thread_block_signals(), called first
 * in main) and gives its number. SIGPIPE is blocked too: a write to a peer that left is -EPIPE,
 * not the end of the process. Children inherit the mask. */
void thread_block_signals(void);
int thread_wait_signal(void);

#endif
