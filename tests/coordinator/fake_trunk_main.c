/*
 * The fake trunk as a process of its own, on the shape and digest of a checkpoint:
 *     fake_trunk CHECKPOINT SECRET ADDRESS FIRST-END LAYER_SECONDS [repeats]
 * Prints "listening ADDRESS"; ends with SIGTERM.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "tests/coordinator/fake_trunk.h"

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
    o.repeats = argc > 6 && strcmp(argv[6], "repeats") == 0;
    f = fake_trunk_start(&o);
    printf("listening %s\n", fake_trunk_address(f));
    fflush(stdout);
    thread_wait_signal();
    fake_trunk_stop(f);
    checkpoint_close(&checkpoint);
    return 0;
}
