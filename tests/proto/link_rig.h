/*
 * Both sides of a link for tests: a server that echoes, in a thread or in a process of its own
 * that can be killed, and somebody who asks it. What fails, fails the test.
 */
#ifndef TESTS_PROTO_LINK_RIG_H
#define TESTS_PROTO_LINK_RIG_H

#include <sys/types.h>

#include "base/thread.h"
#include "proto/link.h"
#include "proto/link_server.h"

#define PAYLOAD_MOST ((uint64_t)1 << 22)

/* A server that echoes the payload of Compute after `layer` milliseconds and answers Hello. */
struct echo {
    struct link_server *server;
    struct queue incoming;
    struct thread thread;
    uint64_t instance;
    uint64_t payload_told; /* in Hello; 0: nothing is told */
};

/* Secret and model are filled with these bytes; an asker's are 1 and 2. */
void echo_open(struct echo *e, const char *address, uint8_t secret, uint8_t model);
void echo_close(struct echo *e);

/* Serves for ever: main() of the test started as "TEST --serve ADDRESS". */
int serve(const char *address);

/* Starts this test as such a server and gives the address it listens on. */
pid_t child_start(const char *address, char ret_address[64]);
void child_kill(pid_t child);

struct asker {
    struct links *links;
    struct link *link;
    struct queue done;
};

void asker_open(struct asker *a, const char *address);
void asker_close(struct asker *a);
void await_state(struct asker *a, enum link_state wanted);

struct question {
    struct link_call call;
    Kapok__Request request;
    Kapok__Compute compute;
    struct iovec payload;
};

/* A Compute that is answered after `ms` milliseconds. */
void question_open(struct question *q, struct asker *a, unsigned ms, const void *bytes,
                   size_t length);

/* Waits for the next call that ends. */
struct link_call *next_done(struct asker *a);

#endif
