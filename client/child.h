/*
 * One supervised process: its command line, its log, the address it listens on, and when it may
 * be started again after it died.
 *
 * A program tells its address by one line on stdout, "listening ADDRESS"; it is started with a
 * port of 0 first, and with the address it got from then on, so that its peers find it again.
 * Children end with their parent, also when that is killed.
 */
#ifndef CLIENT_CHILD_H
#define CLIENT_CHILD_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "client/rundir.h"

#define CHILD_ARGUMENTS 160
#define CHILD_LISTEN    2 /* argument that holds the address; 0 and 1: program, "--listen" */

struct child {
    char name[32];
    char *argument[CHILD_ARGUMENTS + 1]; /* owned */
    unsigned arguments;
    pid_t pid;  /* 0: it does not run */
    int output; /* its stdout, -1 */
    bool listening, ever_listened;
    char line[300]; /* of its stdout, so far */
    unsigned line_bytes;
    unsigned starts;
    long log_from;                   /* where its log begins that this start wrote */
    double started, again_at, pause; /* monotonic seconds */
};

/* `listen` without a scheme change: "tcp://127.0.0.1:0" or "127.0.0.1:8000". */
void child_init(struct child *c, const char *name, const char *program, const char *listen);
void child_fini(struct child *c);

/* printf-like; too many are an error of ours. */
void child_add(struct child *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Where it listens; valid once listening. */
const char *child_address(const struct child *c);

/* Starts it with its stderr appended to NAME.log in the run directory. */
int child_start(struct child *c, const struct rundir *d);

/* Its stdout is readable: true when this made it listening. */
bool child_read(struct child *c);

/* The memory table it wrote before it listened: the lines of its log that are no log lines. */
void child_print_memory(const struct child *c, const struct rundir *d, FILE *out);

/* It was reaped; sets when it may be started again (0.2 s, doubling to 10 s, anew after a
 * minute of running). */
void child_ended(struct child *c, const struct rundir *d);

#endif
