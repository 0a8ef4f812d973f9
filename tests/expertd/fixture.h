/*
 * What the tests of the expert server stand on: a small checkpoint of random experts, the sums
 * computed from it in the plainest way, a server in this process and somebody who asks it.
 */
#ifndef TESTS_EXPERTD_FIXTURE_H
#define TESTS_EXPERTD_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

#include "expertd/serving.h"
#include "proto/checkpoint.h"
#include "proto/compute.h"
#include "tests/expertd/asker.h"

#define FIXTURE_LAYERS  3 /* the first is dense */
#define FIXTURE_EXPERTS 12
#define FIXTURE_CHOSEN  4
#define FIXTURE_LATENT  64
#define FIXTURE_WIDTH   384 /* 12 bands of 32 */
#define FIXTURE_BANDS   12
#define FIXTURE_PARTS   6

enum fixture_order {
    FIXTURE_RELEASED, /* sorted by name, as in the release */
    FIXTURE_SHUFFLED, /* any order, experts' tensors apart, two shards a layer */
};

struct fixture {
    char folder[64];
    char secret[96];
    uint8_t *part[FIXTURE_LAYERS][FIXTURE_EXPERTS][FIXTURE_PARTS]; /* w1 s1 w2 s2 w3 s3 */
    bool buffered; /* this file system refuses O_DIRECT */
};

/* Leaves out the tensor of this name when not NULL. */
void fixture_make(struct fixture *f, enum fixture_order order, const char *missing);
void fixture_remove(struct fixture *f);

/* Overwrites one scale byte of an expert's w1, in the file and in memory. */
void fixture_poison(struct fixture *f, uint32_t layer, uint32_t expert, uint8_t scale);

/* The file that holds an expert's w1, and where. */
void fixture_locate(const struct fixture *f, uint32_t layer, uint32_t expert, char path[160],
                    uint64_t *ret_offset);

/* Packs tiles into f->folder/`name`, from memory; `name` REGION_SUMS gives checksums only. */
void fixture_pack(const struct fixture *f, const char *name, const char *layers,
                  const char *experts, const char *bands);

/* Turns one bit of a file round. */
void fixture_flip(const char *path, uint64_t bit);

/* Options for a server of all tiles. */
struct serving_options fixture_options(const struct fixture *f);

/* Opened and started, or the test fails. */
struct serving *fixture_serve(const struct serving_options *o);

/* ---- a request and its answer ---- */

struct fixture_question {
    uint32_t layer, rows;
    uint64_t bands;
    float *z;
    uint32_t *counts;
    uint16_t *experts;
    float *weights;
    size_t total;
};

/* Random rows, each with 0 to FIXTURE_CHOSEN of the experts [first, end). */
void fixture_ask_random(struct fixture_question *q, uint32_t layer, uint32_t rows,
                        const uint32_t first_end[2], unsigned seed);
void fixture_question_free(struct fixture_question *q);

/* Adds what the tiles of the question give, computed plainly, to sum[rows][latent]. */
void fixture_expect(const struct fixture *f, const struct fixture_question *q, int64_t *sum);

void fixture_asker_open(struct asker *a, const struct fixture *f, const char *address);

void fixture_call_start(struct asker_call *c, struct asker *a,
                        const struct fixture_question *q);

/* Asks, waits, adds the answer to `sum` (when there is one); gives the call's error, and its
 * counters and sentence when wanted. */
struct fixture_answer {
    uint64_t bytes_read, tiles_read, tiles_hit;
    char reason[256];
};
int fixture_ask(struct asker *a, const struct fixture_question *q, int64_t *sum,
                struct fixture_answer *ret_answer);

#endif
