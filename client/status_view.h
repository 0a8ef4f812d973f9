/* How a coordinator's /v1/kapok/status is shown to people. */
#ifndef CLIENT_STATUS_VIEW_H
#define CLIENT_STATUS_VIEW_H

#include <stddef.h>
#include <stdio.h>

/* Everything; -EINVAL when the text is not such a status. */
int status_view(FILE *out, const char *text, size_t length);

/* "1.5 GB" and the like (powers of 1000) into a buffer of 16 bytes. */
const char *status_view_bytes(double bytes, char buf[16]);

#endif
