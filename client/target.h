/* Which coordinator a command talks to: --url, else the one of the run directory. */
#ifndef CLIENT_TARGET_H
#define CLIENT_TARGET_H

#include "base/options.h"

struct target {
    const char *url_option, *run_dir, *key_file;
    char url[512];
    char key[512]; /* empty: none */
};

/* The entries of an option table that fill `t`. */
#define TARGET_OPTIONS(t)                                                                      \
    {                                                                                          \
        "url",                                                                                 \
        OPTION_TEXT,                                                                           \
        &(t)->url_option,                                                                      \
        NULL,                                                                                  \
        "URL",                                                                                 \
        "Where the pipeline answers (default: the one `kapok up` runs here)"},                 \
        {"run-dir", OPTION_TEXT, &(t)->run_dir,                                                \
         NULL,      "DIR",       "Run directory of that `kapok up`"},                          \
    {                                                                                          \
        "api-key-file", OPTION_TEXT, &(t)->key_file, NULL, "FILE", "File with the bearer key"  \
    }

/* Settles url and key. -EINVAL with a sentence in `p`. */
int target_find(struct target *t, struct problems *p);

/* The key or NULL. */
const char *target_key(const struct target *t);

#endif
