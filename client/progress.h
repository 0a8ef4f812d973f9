/* A progress line for long commands: on a terminal it is drawn over and over, elsewhere a line
 * every ten seconds. One thread. */
#ifndef CLIENT_PROGRESS_H
#define CLIENT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *what; /* "packing" */
    uint64_t total;   /* bytes */
    uint64_t first;   /* done before we began */
    bool terminal;
    double begun, drawn;
};

/* `done` of `total` bytes are done already. */
void progress_init(struct progress *p, const char *what, uint64_t total, uint64_t done);

/* Draws when it is time to. */
void progress_draw(struct progress *p, uint64_t done);

/* The last line, with the rate over all. */
void progress_fini(struct progress *p, uint64_t done);

#endif
