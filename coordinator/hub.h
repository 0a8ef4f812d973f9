/*
 * The hub: the trunk's stages as one thing that runs steps.
 *
 * A step goes to stage 0, its payload to stage 1, and so on; the last one's are the logits. The
 * hub knows every failure and hides those that can be hidden, with the same answer:
 *   - a stage that is away, or not ready, is waited for;
 *   - a call that was lost is sent again with the same step number, which a stage that has
 *     done the step answers from memory;
 *   - a stage that was restarted (its instance changed) or does not know a sequence has lost
 *     state: the epoch grows, and each sequence of an older epoch is opened anew in all stages
 *     and its standing tokens are replayed before it is next used.
 * What cannot be hidden is a negative errno with a sentence in hub_reason().
 *
 * Sequence ids are small numbers the hub hands out; a coordinator that starts closes them all,
 * so that nothing of its predecessor lingers. Step numbers begin at a random point.
 *
 * One thread (the scheduler's) calls everything but hub_stages(), hub_limits() and
 * hub_missing(), which any thread may call. The `wanted` function is asked several times a
 * second while the hub waits; when it says no, the stage that is computing is told to stop at
 * its next layer and the call ends with -ECANCELED.
 */
#ifndef COORDINATOR_HUB_H
#define COORDINATOR_HUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coordinator/sequence.h"
#include "proto/link.h"

#define HUB_STAGES    64
#define HUB_ROWS      1024 /* of one step, whatever the stages allow */
#define HUB_SEQUENCES 4096

struct hub;

struct hub_options {
    struct links *links;
    struct link **stage; /* in order of their layers */
    size_t stages;
    const struct shape *shape;
    bool (*wanted)(void *context);
    void *context;
};

int hub_open(struct hub **ret_hub, const struct hub_options *o);
void hub_close(struct hub *h);

/* What all stages allow; all zero until every stage has said hello. */
struct hub_limits {
    uint32_t rows_most, logits_most, sequences_most;
    uint64_t positions_most;
};
void hub_limits(struct hub *h, struct hub_limits *ret_limits);

/* True when every stage is up, their layers make up the model, and all tiles are held;
 * otherwise a sentence about the first thing that is missing. */
bool hub_missing(struct hub *h, char *ret_sentence, size_t size);

/* Waits until nothing is missing. -ECANCELED. */
int hub_wait(struct hub *h);

size_t hub_stages(const struct hub *h);
struct link *hub_stage(const struct hub *h, size_t stage);

/* Opens an empty sequence of s->room positions in all stages and gives it an id. -ENOSPC: no
 * room in a stage. */
int hub_sequence_open(struct hub *h, struct sequence *s);

/* Opens `s` as a copy of the committed state of `from`: s->standing = s->committed =
 * from->committed. The caller has put the same tokens into both. -ESTALE: `from` is of an
 * older epoch and holds nothing. */
int hub_sequence_fork(struct hub *h, const struct sequence *from, struct sequence *s);

/* Makes all its standing positions committed, by a step without rows when need be. -ESTALE when
 * the hub has lost it. */
int hub_sequence_commit(struct hub *h, struct sequence *s);

/* Gives its room back; fine when it is not open. */
void hub_sequence_close(struct hub *h, struct sequence *s);

/* Has the hub lost this sequence's state since? (It is replayed when used.) */
bool hub_sequence_stale(const struct hub *h, const struct sequence *s);

/* A step is put together row by row. Rows of one sequence follow each other, begin at its
 * `standing` position, and are its own tokens or drafts that follow them. */
void hub_begin(struct hub *h);
void hub_row(struct hub *h, struct sequence *s, uint32_t position, uint32_t token, bool logits);
size_t hub_rows(const struct hub *h);

struct hub_result {
    const float *logits; /* [rows that wanted them][vocab], until the next call of the hub */
    uint64_t trunk_bytes, expert_bytes, expert_hits;
    double seconds;
};

/* Runs it. On success the sequences' `committed` is what the stages now hold for good. */
int hub_run(struct hub *h, struct hub_result *ret_result);

/* Why the last call failed. */
const char *hub_reason(const struct hub *h);

/* Counters for people: steps run, calls sent again, sequences replayed. */
struct hub_counts {
    uint64_t steps, rows, resent, replayed, cancelled;
};
void hub_counts(struct hub *h, struct hub_counts *ret_counts);

#endif
