/*
 * The weight stream against the shard files: every block of every pass must hold the file's
 * bytes, in the plan's order, whatever the ring, what is pinned, whether the head is wanted and
 * where passes are broken off. Run with the folder of a small checkpoint.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "trunk/weights.h"

static const char *folder;

struct stage {
    struct checkpoint checkpoint;
    struct weights_plan plan;
    struct memory memory;
    struct weights *weights;
    uint8_t *expected;
};

#define BLOCK_BYTES 16384 /* small, so that matrices have several blocks */

static void stage_open(struct stage *s, uint32_t first, uint32_t end, uint64_t more_ring,
                       uint64_t pinned)
{
    struct problems p;
    problems_init(&p);
    memset(s, 0, sizeof *s);
    assert_int_equal(checkpoint_open(&s->checkpoint, folder, &p), 0);
    if (end == 0)
        end = s->checkpoint.shape.layers;
    assert_int_equal(weights_plan_open(&s->plan, &s->checkpoint, first, end, BLOCK_BYTES, &p),
                     0);
    memory_init(&s->memory, 0);
    struct weights_options o = {weights_floor(&s->plan) + more_ring, pinned, 8, false};
    assert_int_equal(weights_open(&s->weights, &s->checkpoint, &s->plan, &o, &s->memory, &p),
                     0);
    assert_int_equal(weights_start(s->weights), 0);
    s->expected = malloc((size_t)1 << 22);
}

static void stage_close(struct stage *s)
{
    weights_close(s->weights);
    weights_plan_close(&s->plan);
    memory_fini(&s->memory);
    checkpoint_close(&s->checkpoint);
    free(s->expected);
}

static void check_bytes(struct stage *s, const struct weights_block *b)
{
    const struct weights_entry *e = b->entry;
    size_t bytes = (size_t)b->rows * e->row_bytes;
    int fd = open(safetensors_path(s->checkpoint.tensors, e->shard), O_RDONLY);
    assert_true(fd >= 0 && bytes <= (size_t)1 << 22);
    uint64_t from = e->offset + (uint64_t)b->row * e->row_bytes;
    assert_int_equal(file_pread(fd, s->expected, bytes, from), 0);
    close(fd);
    assert_memory_equal(b->data, s->expected, bytes);
}

/* Takes blocks until `most` were taken or the pass is over. */
static void run_pass(struct stage *s, bool with_head, size_t most)
{
    size_t taken = 0;
    weights_begin(s->weights, with_head);
    size_t entries = with_head ? s->plan.entries : s->plan.head;
    for (size_t i = 0; i < entries; i++) {
        const struct weights_entry *e = &s->plan.entry[i];
        for (uint32_t row = 0; row < e->rows;) {
            if (taken++ == most) {
                weights_rewind(s->weights);
                return;
            }
            struct weights_block b;
            assert_int_equal(weights_take(s->weights, &b), 0);
            assert_ptr_equal(b.entry, e);
            assert_int_equal(b.row, row);
            row += b.rows;
            assert_int_equal(b.last, row == e->rows);
            check_bytes(s, &b);
            weights_give(s->weights, &b);
        }
    }
}

static void passes_hold_the_files_bytes(void **state)
{
    static const uint64_t pinned[] = {0, 1 << 20, (uint64_t)1 << 30};
    static const uint64_t ring[] = {0, 1 << 20, (uint64_t)1 << 28};
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++) {
            struct stage s;
            stage_open(&s, 0, 0, ring[i], pinned[j]);
            run_pass(&s, true, SIZE_MAX);
            run_pass(&s, false, SIZE_MAX);
            run_pass(&s, false, SIZE_MAX);
            run_pass(&s, true, SIZE_MAX);
            stage_close(&s);
        }
}

static void broken_off_passes_leave_no_trace(void **state)
{
    struct stage s;
    stage_open(&s, 0, 0, 1 << 18, 1 << 20);
    srand(1);
    for (int i = 0; i < 40; i++) {
        run_pass(&s, rand() % 2, (size_t)(rand() % 300));
        if (i % 10 == 9)
            run_pass(&s, rand() % 2, SIZE_MAX);
    }
    stage_close(&s);
}

static void pinned_blocks_are_read_once(void **state)
{
    struct stage s;
    struct weights_counters first, second;
    stage_open(&s, 0, 0, 0, (uint64_t)1 << 30);
    run_pass(&s, true, SIZE_MAX);
    weights_counters(s.weights, &first);
    run_pass(&s, true, SIZE_MAX);
    weights_counters(s.weights, &second);
    assert_true(first.bytes_read > 0);
    assert_int_equal(first.bytes_read, second.bytes_read);
    /* The last page of a shard is rarely whole. */
    assert_true(first.bytes_read <= first.bytes_pinned);
    assert_true(first.bytes_read + safetensors_shards(s.checkpoint.tensors) * 4096 >
                first.bytes_pinned);
    stage_close(&s);
}

static void a_stage_without_the_last_layer_has_no_head(void **state)
{
    struct stage s;
    stage_open(&s, 1, 3, 0, 0);
    assert_int_equal(s.plan.head, s.plan.entries);
    assert_int_equal(s.plan.entry[0].layer, 1);
    assert_int_equal(s.plan.entry[s.plan.entries - 1].layer, 2);
    run_pass(&s, false, SIZE_MAX);
    stage_close(&s);
}

static void heads_of_kv_b_stay_whole(void **state)
{
    struct stage s;
    stage_open(&s, 0, 0, 0, 0);
    const struct shape *h = &s.checkpoint.shape;
    unsigned seen = 0;
    for (size_t i = 0; i < s.plan.entries; i++)
        if (s.plan.entry[i].role == WEIGHTS_KV_B) {
            assert_int_equal(s.plan.entry[i].block_rows % (h->nope + h->v_dim), 0);
            seen++;
        }
    assert_true(seen > 0);
    stage_close(&s);
}

static void a_ring_below_the_floor_is_refused(void **state)
{
    struct stage s;
    stage_open(&s, 0, 0, 0, 0);
    struct problems p;
    problems_init(&p);
    struct weights *w = NULL;
    struct weights_options o = {weights_floor(&s.plan) - 1, 0, 8, false};
    assert_int_not_equal(weights_open(&w, &s.checkpoint, &s.plan, &o, &s.memory, &p), 0);
    assert_null(w);
    assert_non_null(strstr(p.text, "ring"));
    stage_close(&s);
}

/* A shard that lost its tail after it was indexed: the block's error names tensor and file. */
static void a_shard_cut_while_open_is_an_error(void **state)
{
    char command[512], copy[] = "weights-test-XXXXXX";
    assert_non_null(mkdtemp(copy));
    snprintf(command, sizeof command, "cp -r '%s'/. '%s'", folder, copy);
    assert_int_equal(system(command), 0);
    const char *whole = folder;
    struct stage s;
    struct weights_block b;
    int r = 0;
    folder = copy;
    stage_open(&s, 0, 0, 0, 0);
    assert_int_equal(truncate(safetensors_path(s.checkpoint.tensors, 2), 8192), 0);
    weights_begin(s.weights, true);
    for (size_t i = 0; i < 100000 && !(r = weights_take(s.weights, &b)); i++)
        weights_give(s.weights, &b);
    assert_int_equal(r, -ENODATA);
    assert_non_null(strstr(weights_error(s.weights), "model-00003"));
    weights_rewind(s.weights);
    stage_close(&s);
    folder = whole;
    snprintf(command, sizeof command, "rm -r '%s'", copy);
    assert_int_equal(system(command), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_hold_the_files_bytes),
        cmocka_unit_test(broken_off_passes_leave_no_trace),
        cmocka_unit_test(pinned_blocks_are_read_once),
        cmocka_unit_test(a_stage_without_the_last_layer_has_no_head),
        cmocka_unit_test(heads_of_kv_b_stay_whole),
        cmocka_unit_test(a_ring_below_the_floor_is_refused),
        cmocka_unit_test(a_shard_cut_while_open_is_an_error),
    };
    if (argc < 2)
        return 77;
    folder = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
