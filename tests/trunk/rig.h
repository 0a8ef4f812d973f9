/*
 * A stage in one process without links: the parts of trunk/ put together by hand over a small
 * checkpoint, with made-up experts, so that steps can be run one by one and their bits
 * compared.
 */
#ifndef TESTS_RIG_H
#define TESTS_RIG_H

#include "trunk/runner.h"
#include "trunk/runner_step.h"

struct rig_options {
    uint32_t layers[2]; /* end 0: all */
    unsigned threads;
    const char *isa; /* NULL: the best */
    uint32_t rows, sequences, positions;
    uint64_t pinned; /* bytes of weights */
    size_t own_room; /* floats; 0: what sizing says */
};

struct rig {
    struct checkpoint checkpoint;
    struct weights_plan plan;
    struct sizing sizing;
    struct memory memory;
    struct links *links;
    struct coverage coverage;
    struct embed embed;
    struct states states;
    struct runner runner;
    struct gather gather;
    /* Of the made-up experts: */
    struct routing routing;
    const float *z;
    uint32_t cancel_layer; /* the step is cancelled when this layer's experts are asked */
    unsigned dropped;
};

void rig_open(struct rig *r, const char *folder, const struct rig_options *o);
void rig_close(struct rig *r);

void rig_sequence(struct rig *r, uint64_t id, uint32_t positions); /* opens it */

/* A step being put together. */
struct rig_step {
    Kapok__Request request;
    Kapok__Step body;
    uint64_t sequence[512], commit_sequence[16];
    uint32_t position[512], token[512], commit_length[16];
    protobuf_c_boolean logits[512];
    const float *input; /* of later stages */
    size_t input_bytes;
    char why[320];
};

void rig_step_begin(struct rig_step *s);
void rig_step_row(struct rig_step *s, uint64_t sequence, uint32_t position, uint32_t token);
void rig_step_commit(struct rig_step *s, uint64_t sequence, uint32_t length);

/* Runs it; the answer is r->runner.output of r->runner.answer_bytes. */
int rig_step_run(struct rig *r, struct rig_step *s);

/* Runs tokens[from..to) of one sequence in chunks, committing what went before, and copies the
 * logits of every position to out [to - from][vocab]. */
void rig_generate(struct rig *r, uint64_t id, const uint32_t *tokens, const uint32_t range[2],
                  uint32_t chunk, float *out);

#endif
