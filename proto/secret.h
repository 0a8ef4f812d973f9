/*
 * The deployment's secret: 32 random bytes in a file that only its owner may read. Every
 * request shows it, because any local user can reach a loopback port.
 */
#ifndef PROTO_SECRET_H
#define PROTO_SECRET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/problems.h"

#define SECRET_BYTES 32

/* Reads one: exactly 32 bytes, a regular file that group and others cannot read. */
int secret_load(const char *path, uint8_t ret_secret[SECRET_BYTES], struct problems *p);

/* Makes a new one with mode 0600. */
int secret_make(const char *path, struct problems *p);

/* In constant time. */
bool secret_equal(const uint8_t *a, const uint8_t *b);

#endif
