/* Streaming XXH3-128; the canonical (big-endian) form is what is printed. */
#include "coordinator/digest.h"

#include <stdio.h>

void digest_init(struct digest *d)
{
    XXH3_INITSTATE(&d->state);
    XXH3_128bits_reset(&d->state);
}

void digest_add(struct digest *d, const float *logits, size_t count)
{
    XXH3_128bits_update(&d->state, logits, count * sizeof *logits);
}

void digest_text(const struct digest *d, char ret_text[33])
{
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&d->state));
    for (unsigned i = 0; i < 16; i++)
        snprintf(ret_text + 2 * i, 3, "%02x", canonical.digest[i]);
}
