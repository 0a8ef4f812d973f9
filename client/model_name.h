/* The name of the model a coordinator serves, for requests that have to name it. */
#ifndef CLIENT_MODEL_NAME_H
#define CLIENT_MODEL_NAME_H

#include <stddef.h>

#include "client/fetch.h"
#include "client/target.h"

/* Asks /v1/models for the first one. The answer `a` is for telling what went wrong, released by
 * the caller in every case. Errors of fetch(); -EPROTO when the answer names no model. */
int model_name_find(const struct target *t, char *ret_name, size_t size,
                    struct fetch_answer *a);

#endif
