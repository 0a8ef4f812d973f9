/*
 * A small model of the release's form, for tests: config.json as text, and the shape it makes.
 * 7 layers (1 dense), 32 experts of width 384 in 12 bands, latent 64, hidden 128.
 */
#ifndef TESTS_PROTO_TINY_H
#define TESTS_PROTO_TINY_H

#include "proto/shape.h"

extern const char tiny_config[];

/* The shape of tiny_config; fails the test when it is refused. */
struct shape tiny_shape(void);

#endif
