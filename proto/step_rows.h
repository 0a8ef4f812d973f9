/*
 * What a Step brings to a trunk stage: read through one bounded reader, so that the stage can
 * use the arrays without another look.
 *
 * Payload of stages after the first: f32 [rows][sources][hidden], the snapshots that exist when
 * the stage's first layer begins, oldest first, then the running sum. The first stage has none.
 * A stage that is not the last answers with the same for its end layer, the last one with
 * f32 [rows that want logits][vocab].
 */
#ifndef PROTO_STEP_ROWS_H
#define PROTO_STEP_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "proto/msg.h"
#include "proto/shape.h"

/* What the stage runs and allows. */
struct step_rows_limits {
    uint32_t layer_first, layer_end;
    uint32_t rows_most, logits_most;
};

/* Pointers into the message. */
struct step_rows {
    uint64_t number;
    uint32_t rows, wanted;    /* wanted: rows that want logits; 0 but in the last stage */
    const uint64_t *sequence; /* [rows] */
    const uint32_t *position, *token; /* [rows] */
    const protobuf_c_boolean *logits; /* [rows] */
    uint32_t commits;
    const uint64_t *commit_sequence; /* [commits] */
    const uint32_t *commit_length;   /* [commits] */
    uint32_t sources;                /* 0 in the first stage */
    const float *input;              /* [rows][sources][hidden], NULL in the first stage */
};

/* Sources of a stage that begins, or that follows one that ends, at `layer`. */
static inline uint32_t step_rows_sources(const struct shape *s, uint32_t layer)
{
    return layer ? shape_snapshots(s, layer) + 1 : 0;
}

/* Bytes of the payload of a Step to a stage that begins at `layer`. */
size_t step_rows_bytes(const struct shape *s, uint32_t layer, uint32_t rows);

/* Bytes of the payload of its answer, from a stage that ends at `layer_end`. */
size_t step_rows_reply_bytes(const struct shape *s, uint32_t layer_end, uint32_t rows,
                             uint32_t wanted);

/* Checks everything a stage can check without its sequences: arrays of equal length, at most
 * rows_most rows, tokens of the vocabulary, positions within the context, rows of one sequence
 * at consecutive positions, the payload's size, and that its numbers are finite. A step without
 * rows is good when it has commits. -EBADMSG with a sentence (static text). */
int step_rows_open(struct step_rows *r, const struct msg *m, const struct shape *s,
                   const struct step_rows_limits *limits, const char **ret_why);

#endif
