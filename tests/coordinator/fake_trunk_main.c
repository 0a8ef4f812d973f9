/*
 * The fake trunk as a process of its own, on the shape and digest of a checkpoint:
 *     fake_trunk CHECKPOINT SECRET ADDRESS FIRST-END LAYER_SECONDS [repeats | SCRIPTS]
 * SCRIPTS is a file of texts, one a line, with the literals of control tokens.
 * Prints "listening ADDRESS"; ends with SIGTERM.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "coordinator/text/tokenizer.h"
#include "tests/coordinator/fake_trunk.h"

static struct fake_script scripts[64];

static size_t read_scripts(const char *path, struct tokenizer *t)
{
    FILE *in = fopen(path, "r");
    char *line = NULL;
    size_t room = 0, n = 0;
    ssize_t length;

    while (in != NULL && n < 64 && (length = getline(&line, &room, in)) > 1) {
        if (tokenizer_encode(t, line, (size_t)length - 1, true, &scripts[n].id,
                             &scripts[n].count) != 0)
            abort();
        n++;
    }
    free(line);
    if (in != NULL)
        fclose(in);
    return n;
}

int main(int argc, char **argv)
{
    static uint8_t secret[SECRET_BYTES];
    static struct checkpoint checkpoint;
    static struct problems p;
    struct fake_trunk_options o = {.secret = secret,
                                   .model = checkpoint.digest,
                                   .shape = &checkpoint.shape,
                                   .sequences = 80,
                                   .rows = 128,
                                   .logits = 80,
                                   .positions = 100000};
    struct tokenizer *tokenizer = NULL;
    struct fake_trunk *f;

    if (argc < 6)
        return 2;
    thread_block_signals();
    problems_init(&p);
    if (checkpoint_open(&checkpoint, argv[1], &p) != 0 ||
        secret_load(argv[2], secret, &p) != 0) {
        fprintf(stderr, "%s\n", p.text);
        return 1;
    }
    o.address = argv[3];
    if (sscanf(argv[4], "%u-%u", &o.layer_first, &o.layer_end) != 2)
        return 2;
    o.layer_seconds = atof(argv[5]);
    if (argc > 6 && strcmp(argv[6], "repeats") != 0) {
        if (tokenizer_open(&tokenizer, argv[1], checkpoint.shape.vocab, &p) != 0)
            return 1;
        o.script = scripts;
        o.scripts = read_scripts(argv[6], tokenizer);
    }
    o.repeats = argc > 6 && strcmp(argv[6], "repeats") == 0;
    f = fake_trunk_start(&o);
    printf("listening %s\n", fake_trunk_address(f));
    fflush(stdout);
    thread_wait_signal();
    fake_trunk_stop(f);
    for (size_t i = 0; i < o.scripts; i++)
        free(scripts[i].id);
    tokenizer_close(tokenizer);
    checkpoint_close(&checkpoint);
    return 0;
}
