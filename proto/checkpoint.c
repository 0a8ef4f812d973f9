/* Opening a checkpoint folder: see the header. */
#include "proto/checkpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/file.h"

#define CONFIG_MOST ((size_t)1 << 20)

/* config.json once more, as bytes: the digest covers what was written, not what was read. */
static int digest_model(struct checkpoint *c, struct problems *p)
{
    char path[4096], *config = NULL;
    size_t length = 0;
    uint8_t headers[CHECKPOINT_DIGEST];
    snprintf(path, sizeof path, "%s/config.json", c->folder);
    int r = file_read(path, CONFIG_MOST, &config, &length);
    if (r) {
        problems_add(p, "%s: %s", path, strerror(-r));
        return r;
    }
    safetensors_digest(c->tensors, headers);
    XXH3_state_t *state = XXH3_createState();
    if (state) {
        XXH3_128bits_reset(state);
        XXH3_128bits_update(state, config, length);
        XXH3_128bits_update(state, headers, sizeof headers);
        XXH128_canonical_t canonical;
        XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
        memcpy(c->digest, canonical.digest, CHECKPOINT_DIGEST);
    }
    XXH3_freeState(state);
    free(config);
    return state ? 0 : -ENOMEM;
}

int checkpoint_open(struct checkpoint *c, const char *folder, struct problems *p)
{
    struct checkpoint made = {0};
    int r = shape_read(&made.shape, folder, p);
    if (r)
        return r;
    r = safetensors_open(&made.tensors, folder, p);
    if (r)
        return r;
    made.folder = strdup(folder);
    r = made.folder ? digest_model(&made, p) : -ENOMEM;
    if (r) {
        checkpoint_close(&made);
        return r;
    }
    *c = made;
    return 0;
}

void checkpoint_close(struct checkpoint *c)
{
    safetensors_close(c->tensors);
    free(c->folder);
    *c = (struct checkpoint){0};
}

/* "BF16 [7168, 12288]" */
static void describe(char *out, size_t size, enum safetensors_dtype dtype,
                     const uint32_t *shape, unsigned dims)
{
    size_t at = (size_t)snprintf(out, size, "%s [", safetensors_dtype_name(dtype));
    for (unsigned i = 0; i < dims && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%u", i ? ", " : "", shape[i]);
    if (at < size)
        snprintf(out + at, size - at, "]");
}

const struct safetensors_tensor *checkpoint_tensor(const struct checkpoint *c, const char *name,
                                                   enum safetensors_dtype dtype,
                                                   const uint32_t *shape, unsigned dims,
                                                   struct problems *p)
{
    const struct safetensors_tensor *t = safetensors_find(c->tensors, name);
    if (!t) {
        problems_add(p, "%s: there is no tensor %s", c->folder, name);
        return NULL;
    }
    if (t->dtype == dtype && t->dims == dims && !memcmp(t->shape, shape, dims * sizeof *shape))
        return t;
    char expected[96], found[96];
    describe(expected, sizeof expected, dtype, shape, dims);
    describe(found, sizeof found, t->dtype, t->shape, t->dims);
    problems_add(p, "%s: %s: expected %s, found %s", safetensors_path(c->tensors, t->shard),
                 name, expected, found);
    return NULL;
}

void checkpoint_digest_text(const uint8_t digest[CHECKPOINT_DIGEST], char ret_text[33])
{
    for (unsigned i = 0; i < CHECKPOINT_DIGEST; i++)
        snprintf(ret_text + 2 * i, 3, "%02x", digest[i]);
}
