/* One option's value. The text forms of a size are exact both ways: 24G is never 23.99. */
#include "base/options_value.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char units[] = "KMGT";

const char *options_value_form(enum option_kind kind)
{
    switch (kind) {
    case OPTION_COUNT:
        return "a decimal number";
    case OPTION_SIZE:
        return "bytes as a decimal number with an optional K, M, G or T";
    case OPTION_REAL:
        return "a finite number";
    case OPTION_FLAG:
        return "true or false";
    case OPTION_TEXT:
    case OPTION_LIST:
        break;
    }
    return "text";
}

/* Digits only: strtoull would take signs and spaces. */
static int parse_decimal(const char *text, uint64_t *ret_value, const char **ret_rest)
{
    uint64_t value = 0;

    if (!isdigit((unsigned char)*text))
        return -EINVAL;
    for (; isdigit((unsigned char)*text); text++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return -ERANGE;
    *ret_value = value;
    *ret_rest = text;
    return 0;
}

int options_size(const char *text, uint64_t *ret_bytes, const char **why)
{
    const char *rest;
    uint64_t value;
    int error = parse_decimal(text, &value, &rest);

    if (error == 0 && *rest != '\0') {
        const char *unit = strchr(units, *rest);
        if (!unit || rest[1] != '\0')
            error = -EINVAL;
        else if (__builtin_mul_overflow(value, (uint64_t)1024 << 10 * (unit - units), &value))
            error = -ERANGE;
    }
    if (error) {
        *why = error == -ERANGE
                   ? "expected fewer than 2^64 bytes"
                   : "expected bytes as a decimal number with an optional K, M, G or T";
        return -EINVAL;
    }
    *ret_bytes = value;
    return 0;
}

static int set_number(const struct option *o, const char *text)
{
    uint64_t value;
    const char *rest;
    int error;

    if (o->kind == OPTION_SIZE) {
        error = options_size(text, &value, &rest);
    } else {
        error = parse_decimal(text, &value, &rest);
        if (error == 0 && *rest != '\0')
            error = -EINVAL;
    }
    if (error)
        return error;
    if (value < o->least || (o->most > 0 && value > o->most))
        return -ERANGE;
    *(uint64_t *)o->value = value;
    return 0;
}

static int set_real(const struct option *o, const char *text)
{
    char *rest;
    double value = strtod(text, &rest);

    if (rest == text || *rest != '\0' || isspace((unsigned char)*text) || !isfinite(value))
        return -EINVAL;
    *(double *)o->value = value;
    return 0;
}

static int set_flag(const struct option *o, const char *text)
{
    bool on = !strcmp(text, "true");

    if (!on && strcmp(text, "false"))
        return -EINVAL;
    *(bool *)o->value = on;
    return 0;
}

int options_value_set(const struct option *o, const char *text)
{
    switch (o->kind) {
    case OPTION_TEXT:
        *(const char **)o->value = text;
        return 0;
    case OPTION_COUNT:
    case OPTION_SIZE:
        return set_number(o, text);
    case OPTION_REAL:
        return set_real(o, text);
    case OPTION_FLAG:
        return set_flag(o, text);
    case OPTION_LIST:
        break;
    }
    return -EINVAL;
}

/* The largest unit that divides it. */
static void number_text(enum option_kind kind, uint64_t value, char *buf, size_t size)
{
    size_t unit = 0;

    while (kind == OPTION_SIZE && value > 0 && value % 1024 == 0 && unit < strlen(units)) {
        value /= 1024;
        unit++;
    }
    snprintf(buf, size, "%" PRIu64 "%.*s", value, unit > 0, unit > 0 ? &units[unit - 1] : "");
}

void options_value_bounds(const struct option *o, char *buf, size_t size)
{
    char least[32], most[32];
    bool number = o->kind == OPTION_COUNT || o->kind == OPTION_SIZE;

    number_text(o->kind, o->least, least, sizeof least);
    number_text(o->kind, o->most, most, sizeof most);
    if (number && o->most > 0)
        snprintf(buf, size, "%s to %s", least, most);
    else if (number && o->least > 0)
        snprintf(buf, size, "at least %s", least);
    else
        snprintf(buf, size, "%s", "");
}

static void list_text(const struct option_list *list, char *buf, size_t size)
{
    size_t used = 0;

    snprintf(buf, size, "%s", "");
    for (size_t i = 0; i < list->count && used < size; i++)
        used +=
            (size_t)snprintf(buf + used, size - used, "%s%s", i > 0 ? "," : "", list->item[i]);
}

void options_value_text(const struct option *o, char *buf, size_t size)
{
    const char *text;

    switch (o->kind) {
    case OPTION_TEXT:
        text = *(const char **)o->value;
        snprintf(buf, size, "%s", text ? text : "");
        return;
    case OPTION_COUNT:
    case OPTION_SIZE:
        number_text(o->kind, *(const uint64_t *)o->value, buf, size);
        return;
    case OPTION_REAL:
        snprintf(buf, size, "%.9g", *(const double *)o->value);
        return;
    case OPTION_FLAG:
        snprintf(buf, size, "%s", *(const bool *)o->value ? "true" : "false");
        return;
    case OPTION_LIST:
        list_text(o->value, buf, size);
        return;
    }
}
