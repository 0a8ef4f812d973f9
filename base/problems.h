/*
 * A bounded list of sentences about what is wrong with some input, so that all of it can be
 * said at once. Functions that check input take one and add to it; the caller that owns it
 * decides what to print. Beyond the capacity the sentences are counted, not kept.
 */
#ifndef BASE_PROBLEMS_H
#define BASE_PROBLEMS_H

#include <stddef.h>

struct problems {
    char text[8192]; /* sentences, one a line, no newline after the last */
    size_t length;
    size_t count; /* of all, kept or not */
};

void problems_init(struct problems *p);

/* Adds one sentence (printf-like, without a newline). */
void problems_add(struct problems *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
