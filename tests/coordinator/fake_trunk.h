/*
 * A trunk stage without a model, for tests of the coordinator: it keeps sequences and commits
 * as a real one does and refuses what a real one would, and its logits are a pure function of
 * the tokens up to a position. A stage after the first checks that the payload it is given
 * belongs to the same tokens.
 */
#ifndef TESTS_COORDINATOR_FAKE_TRUNK_H
#define TESTS_COORDINATOR_FAKE_TRUNK_H

#include <stdatomic.h>

#include "proto/link_server.h"
#include "proto/shape.h"

struct fake_trunk;

struct fake_script {
    uint32_t *id;
    size_t count;
};

struct fake_trunk_options {
    const char *address; /* "tcp://127.0.0.1:0" */
    const uint8_t *secret, *model;
    const struct shape *shape;
    uint32_t layer_first, layer_end;
    uint32_t sequences, rows, logits;
    uint64_t positions;
    double layer_seconds; /* a step takes so long for each of its layers */
    bool repeats;         /* logits make the text repeat itself (for drafts) */
    /* What is to be said after what: a sequence that ends as a script begins goes on with it.
     */
    const struct fake_script *script;
    size_t scripts;
};

struct fake_trunk *fake_trunk_start(const struct fake_trunk_options *o);
void fake_trunk_stop(struct fake_trunk *f);
const char *fake_trunk_address(const struct fake_trunk *f);

/* Requests seen; open sequences. */
uint64_t fake_trunk_steps(struct fake_trunk *f);
uint64_t fake_trunk_rows(struct fake_trunk *f);
uint64_t fake_trunk_cancelled(struct fake_trunk *f);
unsigned fake_trunk_open(struct fake_trunk *f);
void fake_trunk_slow(struct fake_trunk *f, double layer_seconds);

/* The logits after `count` tokens. */
void fake_trunk_logits(const struct shape *s, const uint32_t *token, uint32_t count,
                       bool repeats, float *ret_logits);

/* A small shape. */
void fake_trunk_shape(struct shape *s);

#endif
