/* Reads every tile of a region and compares it with its checksum. */
#ifndef CLIENT_REGION_VERIFY_H
#define CLIENT_REGION_VERIFY_H

#include "client/progress.h"
#include "client/region_file.h"

#define REGION_VERIFY_NAMED 20 /* bad tiles that are named */

/* Gives the number of tiles that are not what they should be (each a sentence in `p`, up to
 * REGION_VERIFY_NAMED of them), and the rank of the first. A tile that cannot be read is one.
 * -ECANCELED when SIGINT or SIGTERM is pending. */
int region_verify(const struct region_file *f, struct memory *m, uint64_t *ret_bad,
                  uint64_t *ret_first, struct problems *p);

/* Is SIGINT or SIGTERM pending (they are blocked in commands that look for them)? */
bool region_verify_stopped(void);

#endif
