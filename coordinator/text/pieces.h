/*
 * Cutting text into the pieces that BPE works on (model.md 4.3), by PCRE2 with JIT.
 *
 * Bytes that are not UTF-8 match nothing; each run of them is a piece of its own, so that any
 * bytes can be encoded and come back. Chunks as the reference encoder makes them
 * (model.md 4.4): 400,000 characters, and no more than 25,000 on end that are all white space
 * or all not.
 */
#ifndef COORDINATOR_TEXT_PIECES_H
#define COORDINATOR_TEXT_PIECES_H

#include <stddef.h>
#include <stdint.h>

#include "base/problems.h"

struct pieces;

int pieces_open(struct pieces **ret_pieces, struct problems *p);
void pieces_close(struct pieces *ps);

/* Calls `piece` for every piece in order, none empty, together the whole text. A result of it
 * that is not 0 ends the walk and is given back; -EINVAL when PCRE2 gives up. One thread at a
 * time. */
int pieces_walk(struct pieces *ps, const uint8_t *text, size_t length,
                int (*piece)(void *context, const uint8_t *bytes, size_t n), void *context);

#endif
