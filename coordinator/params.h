/*
 * The fields that chat completions and completions have in common, checked. Anything that
 * cannot be honoured exactly is refused by name (docs/api.md).
 */
#ifndef COORDINATOR_PARAMS_H
#define COORDINATOR_PARAMS_H

#include "coordinator/field.h"
#include "coordinator/sampler.h"

#define PARAMS_CHOICES 64
#define PARAMS_STOPS   16
#define PARAMS_TOP     20 /* top_logprobs at most */

struct params {
    const char *model; /* in the request's JSON, valid while that is */
    uint32_t vocab;    /* set by the caller before reading */
    uint64_t most;     /* max_tokens; 0: not given */
    uint64_t choices;  /* n */
    bool stream, include_usage, background;
    double deadline; /* seconds from its arrival; 0: none */
    bool seeded;
    struct sampler_params sampling;
    struct sampler_bias bias[SAMPLER_BIASES];
    char *stop[PARAMS_STOPS]; /* owned */
    size_t stops;
    bool logprobs;
    uint64_t top_logprobs;
    bool thinking; /* chat only: the answer begins with thinking */
};

/* With the defaults of the API. */
void params_init(struct params *p, uint32_t vocab);
void params_fini(struct params *p);

/* The table of the common fields, for field_object(); reads into a struct params. */
extern const struct field params_fields[];

/* Is `model` given, and this server's? 404 when it is another's. */
bool params_model(const struct params *p, const char *served, struct api_error *e);

/* After reading: what depends on more than one field. A seed is drawn when none was given. */
bool params_finish(struct params *p, struct api_error *e);

#endif
