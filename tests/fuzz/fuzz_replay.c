/*
 * Runs a fuzz target without libFuzzer: on the files named on the command line, or on its seeds
 * and mutations of them. `--write DIR` writes the seeds as files, to begin a corpus with.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#define MUTATIONS 3000 /* of each seed */

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return *state >> 33;
}

/* An input in memory of exactly its length, so that a sanitizer sees a byte read too far. */
static void run(const uint8_t *bytes, size_t length)
{
    uint8_t *copy = malloc(length ? length : 1);
    if (!copy)
        abort();
    memcpy(copy, bytes, length);
    LLVMFuzzerTestOneInput(copy, length);
    free(copy);
}

static void mutate(uint8_t *bytes, size_t *length, uint64_t *state)
{
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff};
    size_t at = next(state) % *length;
    switch (next(state) % 5) {
    case 0:
        bytes[at] ^= (uint8_t)(1U << next(state) % 8);
        break;
    case 1:
        bytes[at] = edges[next(state) % sizeof edges];
        break;
    case 2:
        *length = at + 1;
        break;
    case 3:
        memmove(bytes + at, bytes + at / 2, *length - at);
        break;
    default:
        bytes[at] = (uint8_t)next(state);
    }
}

static void run_seeds(void)
{
    static uint8_t seed[FUZZ_SEED_MOST], bytes[FUZZ_SEED_MOST];
    uint64_t state = 1;
    size_t length;
    for (size_t i = 0; (length = fuzz_seed(i, seed)) > 0; i++) {
        run(seed, length);
        for (int k = 0; k < MUTATIONS; k++) {
            size_t n = length;
            memcpy(bytes, seed, length);
            for (uint64_t times = 1 + next(&state) % 4; times > 0; times--)
                mutate(bytes, &n, &state);
            run(bytes, n);
        }
    }
    run(seed, 0);
}

static int run_file(const char *path)
{
    static uint8_t bytes[1 << 20];
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return 1;
    }
    run(bytes, fread(bytes, 1, sizeof bytes, f));
    fclose(f);
    return 0;
}

static int write_seeds(const char *folder)
{
    static uint8_t seed[FUZZ_SEED_MOST];
    size_t length;
    for (size_t i = 0; (length = fuzz_seed(i, seed)) > 0; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/seed-%zu", folder, i);
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(seed, 1, length, f) != length || fclose(f)) {
            perror(path);
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    if (argc == 3 && !strcmp(argv[1], "--write"))
        return write_seeds(argv[2]);
    for (int i = 1; i < argc; i++)
        failed |= run_file(argv[i]);
    if (argc == 1)
        run_seeds();
    return failed;
}
