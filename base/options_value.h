/*
 * One option's value: from text, to text. Private to the options.
 */
#ifndef BASE_OPTIONS_VALUE_H
#define BASE_OPTIONS_VALUE_H

#include "base/options.h"

/* What a text must look like, for "expected ..., found ...". */
const char *options_value_form(enum option_kind kind);

/* Stores `text` as the value of a TEXT, COUNT, SIZE, REAL or FLAG. TEXT keeps the pointer.
 * -EINVAL when it has not the form, -ERANGE when it is outside the bounds; nothing is stored.
 */
int options_value_set(const struct option *o, const char *text);

/* The bounds of a COUNT or SIZE as words ("1 to 64", "at least 4K"); empty when there are none.
 */
void options_value_bounds(const struct option *o, char *buf, size_t size);

/* The present value as text; a list is joined by commas; empty when not given. */
void options_value_text(const struct option *o, char *buf, size_t size);

#endif
