/*
 * What kernelcheck is made of: a variant of the kernels is run beside the definition on the
 * same inputs and every output bit is compared. All inputs lie at the end of a page that is
 * followed by one that cannot be touched, so reading or writing a byte too far ends the
 * program.
 */
#ifndef TESTS_KERNELS_CHECK_H
#define TESTS_KERNELS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

enum check_fill {
    CHECK_FILL_NORMAL,   /* around 1, both signs */
    CHECK_FILL_ZERO,     /* +0 and -0, some ones */
    CHECK_FILL_DENORMAL, /* subnormal numbers and those just above */
    CHECK_FILL_EXTREME,  /* 2^-60 to 2^60: sums lose and cancel */
    CHECK_FILL_CANCEL,   /* few magnitudes, so that sums come back to zero */
    CHECK_FILLS,
};

struct check {
    const struct kernels *want, *got; /* the definition, the variant */
    uint64_t random;
    size_t every; /* of the shapes only each so many-th is checked */
    size_t shapes, cases, failures;
};

/* Whether the next shape's turn has come. */
bool check_turn(struct check *c);

uint64_t check_random(struct check *c);
size_t check_below(struct check *c, size_t end);
float check_value(struct check *c, enum check_fill fill);

/* An area that ends where a forbidden page begins, or so many bytes before: qemu 7.2 reads 16
 * bytes for the 4 of a scalar multiply-add from memory. */
void check_slack(size_t bytes);
void *check_take(size_t bytes);
void check_give(void *area, size_t bytes);
/* n floats, filled. */
float *check_floats(struct check *c, size_t n, enum check_fill fill);
void check_fill_floats(struct check *c, float *x, size_t n, enum check_fill fill);

/* Counts a case; says what differs. Two NaNs are equal. */
void check_same(struct check *c, const char *what, const float *want, const float *got,
                size_t n);
void check_true(struct check *c, const char *what, bool is_true);

void check_products(struct check *c);
void check_combinations(struct check *c);
void check_pointwise(struct check *c);
void check_norms(struct check *c);
void check_recurrence(struct check *c);
void check_fixed(struct check *c);

#endif
