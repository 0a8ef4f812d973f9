/* The coordinator to talk to: see the header. */
#include "client/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "client/rundir.h"

#define DEFAULT_URL "http://127.0.0.1:8000"

static int read_key(struct target *t, struct problems *p)
{
    char *text;
    size_t length;
    if (!t->key_file)
        return 0;
    int r = file_read(t->key_file, sizeof t->key - 1, &text, &length);
    if (r) {
        problems_add(p, "--api-key-file %s: %s", t->key_file, strerror(-r));
        return r;
    }
    snprintf(t->key, sizeof t->key, "%.*s", (int)strcspn(text, "\r\n"), text);
    free(text);
    return 0;
}

int target_find(struct target *t, struct problems *p)
{
    struct rundir d;
    rundir_name(&d, t->run_dir);
    if (t->url_option)
        snprintf(t->url, sizeof t->url, "%s", t->url_option);
    else if (rundir_url(&d, t->url, sizeof t->url))
        snprintf(t->url, sizeof t->url, DEFAULT_URL);
    if (strncmp(t->url, "http://", 7) && strncmp(t->url, "https://", 8)) {
        problems_add(p, "--url %s: expected http://HOST:PORT", t->url);
        return -EINVAL;
    }
    if (t->url[strlen(t->url) - 1] == '/')
        t->url[strlen(t->url) - 1] = 0;
    return read_key(t, p);
}

const char *target_key(const struct target *t)
{
    return t->key[0] ? t->key : NULL;
}
