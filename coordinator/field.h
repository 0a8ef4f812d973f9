/*
 * Typed reading of a JSON object's fields, with refusal: each function checks kind and bounds
 * and says what was expected and what was found, by the field's name. All return false (and set
 * the error) when the value is refused.
 */
#ifndef COORDINATOR_FIELD_H
#define COORDINATOR_FIELD_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/api_error.h"

bool field_bool(const char *name, const json_t *v, bool *ret, struct api_error *e);
bool field_real(const char *name, const json_t *v, double least, double most, double *ret,
                struct api_error *e);
bool field_count(const char *name, const json_t *v, uint64_t least, uint64_t most,
                 uint64_t *ret, struct api_error *e);
bool field_text(const char *name, const json_t *v, const char **ret, struct api_error *e);

/* "an object", "a string", ... for sentences. */
const char *field_kind(const json_t *v);

/* A field that is known and has only one value this server can honour. */
bool field_only(const char *name, bool honoured, const char *sentence, struct api_error *e);

/* One entry of a table of known fields. */
struct field {
    const char *name;
    bool (*read)(void *into, const char *name, const json_t *v, struct api_error *e);
};

/* Reads every member of `object` by one of the tables (each ends with a NULL name); a member
 * that is null counts as absent, one in no table is refused by name. */
bool field_object(const json_t *object, void *into, const struct field *const *tables,
                  size_t count, struct api_error *e);

#endif
