/* See the header. */
#include "coordinator/field.h"

#include <math.h>
#include <string.h>

const char *field_kind(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    default:
        return "null";
    }
}

static bool wrong_kind(const char *name, const char *expected, const json_t *v,
                       struct api_error *e)
{
    return api_error_set(e, 400, name, "invalid_type", "'%s' must be %s, found %s", name,
                         expected, field_kind(v));
}

bool field_bool(const char *name, const json_t *v, bool *ret, struct api_error *e)
{
    if (!json_is_boolean(v))
        return wrong_kind(name, "a boolean", v, e);
    *ret = json_is_true(v);
    return true;
}

bool field_real(const char *name, const json_t *v, double least, double most, double *ret,
                struct api_error *e)
{
    double x = json_number_value(v);

    if (!json_is_number(v))
        return wrong_kind(name, "a number", v, e);
    if (!isfinite(x) || x < least || x > most)
        return api_error_set(e, 400, name, "invalid_value",
                             "'%s' must be between %g and %g, found %g", name, least, most, x);
    *ret = x;
    return true;
}

bool field_count(const char *name, const json_t *v, uint64_t least, uint64_t most,
                 uint64_t *ret, struct api_error *e)
{
    json_int_t x = json_integer_value(v);

    if (!json_is_integer(v))
        return wrong_kind(name, "an integer", v, e);
    if (x < 0 || (uint64_t)x < least || (uint64_t)x > most)
        return api_error_set(e, 400, name, "invalid_value",
                             "'%s' must be between %llu and %llu, found %lld", name,
                             (unsigned long long)least, (unsigned long long)most, (long long)x);
    *ret = (uint64_t)x;
    return true;
}

bool field_text(const char *name, const json_t *v, const char **ret, struct api_error *e)
{
    if (!json_is_string(v))
        return wrong_kind(name, "a string", v, e);
    *ret = json_string_value(v);
    return true;
}

bool field_only(const char *name, bool honoured, const char *sentence, struct api_error *e)
{
    if (honoured)
        return true;
    return api_error_set(e, 400, name, "unsupported_value", "'%s': %s", name, sentence);
}

static const struct field *find(const char *name, const struct field *const *tables,
                                size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (const struct field *f = tables[i]; f->name != NULL; f++)
            if (strcmp(f->name, name) == 0)
                return f;
    return NULL;
}

bool field_object(const json_t *object, void *into, const struct field *const *tables,
                  size_t count, struct api_error *e)
{
    const char *name;
    json_t *v;

    json_object_foreach((json_t *)object, name, v)
    {
        const struct field *f = find(name, tables, count);

        if (f == NULL)
            return api_error_set(e, 400, name, "unknown_parameter",
                                 "'%s' is not a field this server knows", name);
        if (!json_is_null(v) && !f->read(into, name, v, e))
            return false;
    }
    return true;
}
