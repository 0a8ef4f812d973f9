/* What hub.c, hub_call.c, hub_run.c and hub_sequence.c share; nobody else includes this. */
#ifndef COORDINATOR_HUB_PRIVATE_H
#define COORDINATOR_HUB_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "coordinator/hub.h"

#define HUB_POLL         0.05   /* seconds between looks at `wanted` */
#define HUB_STOP_AGAIN   0.5    /* seconds after which Cancel is said again */
#define HUB_CALL_SECONDS 3600.0 /* a step may take long; a silent peer is noticed before */

struct hub_stage {
    struct link *link;
    struct link_call call; /* the one thing asked of it */
    bool held;             /* call.reply is still in use */
    struct link_call stop; /* Cancel, beside it */
    Kapok__Request stop_request;
    Kapok__Cancel stop_body;
    bool stopping; /* `stop` is under way */
    double stopped;
    uint64_t instance; /* of the present epoch */
};

/* One step's rows and commits, as the message wants them. */
struct hub_batch {
    size_t rows, wanted, commits;
    struct sequence *of[HUB_ROWS];
    uint64_t sequence[HUB_ROWS];
    uint32_t position[HUB_ROWS], token[HUB_ROWS];
    protobuf_c_boolean logits[HUB_ROWS];
    struct sequence *committing[HUB_ROWS];
    uint64_t commit_sequence[HUB_ROWS];
    uint32_t commit_length[HUB_ROWS];
};

struct hub {
    struct hub_options options;
    struct hub_stage stage[HUB_STAGES];
    struct queue done; /* ended calls */
    uint64_t epoch;    /* 0: the stages were never seen together */
    uint64_t number;   /* of the last step */
    struct hub_batch main, replay;
    uint64_t free_id[HUB_SEQUENCES], doomed_id[HUB_SEQUENCES];
    size_t free_ids, doomed_ids;
    uint32_t used_ids; /* ids 1..used_ids have been handed out */
    char reason[512];
    pthread_mutex_t lock; /* of counts */
    struct hub_counts counts;
};

int hub_fail(struct hub *h, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Asks one stage and waits for its answer, through lost connections. The reply stays in
 * stage->call until hub_let_go(). `step`: number by which it may be cancelled, or 0.
 * -ESTALE: the stage has lost its sequences. -ECANCELED: nobody wants it any more. */
int hub_call(struct hub *h, size_t stage, Kapok__Request *request, const struct iovec *payload,
             uint64_t step);
void hub_let_go(struct hub_stage *s);

/* All stages up, of one epoch, what is doomed closed. -ECANCELED. */
int hub_settle(struct hub *h);
/* Some stage lost its state. */
void hub_new_epoch(struct hub *h);

void hub_batch_begin(struct hub_batch *b);
void hub_batch_row(struct hub_batch *b, struct sequence *s, uint32_t position, uint32_t token,
                   bool logits);
/* Its first `length` positions are kept, the others forgotten. */
void hub_batch_commit(struct hub_batch *b, struct sequence *s, uint32_t length);
/* Runs a batch through all stages once. */
int hub_chain(struct hub *h, struct hub_batch *b, struct hub_result *ret_result);

/* Opens `s` in all stages under its id. */
int hub_sequence_announce(struct hub *h, struct sequence *s);
/* Brings a sequence of an older epoch back. */
int hub_sequence_replay(struct hub *h, struct sequence *s);

#endif
