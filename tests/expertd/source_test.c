/* Where bytes lie: how many reads a load takes, and that they are the right pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/disk.h"
#include "expertd/source.h"
#include "tests/expertd/fixture.h"

#define EXPERT_BYTES (3 * FIXTURE_LATENT * FIXTURE_WIDTH * 17 / 32)

static struct fixture fixture;
static struct checkpoint checkpoint;
static struct memory memory;
static struct source source;

static void open_source(enum fixture_order order)
{
    struct tile_set tiles;
    struct problems p;
    problems_init(&p);
    fixture_make(&fixture, order, NULL);
    memory_init(&memory, 0);
    assert_int_equal(checkpoint_open(&checkpoint, fixture.folder, &p), 0);
    assert_int_equal(tile_set_parse(&tiles, &checkpoint.shape, NULL, NULL, NULL, &p), 0);
    assert_int_equal(source_inplace_open(&source, &checkpoint, &tiles,
                                         (bool[]){fixture.buffered, true}, &memory, &p),
                     0);
}

static int open_released(void **state)
{
    open_source(FIXTURE_RELEASED);
    return 0;
}

static int open_shuffled(void **state)
{
    open_source(FIXTURE_SHUFFLED);
    return 0;
}

static int close_source(void **state)
{
    source_close(&source);
    checkpoint_close(&checkpoint);
    memory_fini(&memory);
    fixture_remove(&fixture);
    return 0;
}

static void a_whole_expert_is_one_read(void **state)
{
    struct source_plan plan;
    for (uint32_t layer = 1; layer < FIXTURE_LAYERS; layer++)
        for (uint32_t expert = 0; expert < FIXTURE_EXPERTS; expert++) {
            source_plan(&source, (uint32_t[]){layer, expert}, 0xfff, &plan);
            assert_int_equal(plan.reads, 1);
            assert_int_equal(plan.read[0].length, EXPERT_BYTES);
            assert_int_equal(plan.bytes, disk_span(plan.read[0].offset, EXPERT_BYTES));
        }
}

/* Brings a plan's bytes into a slot with plain reads. */
static void fill(const struct source_plan *plan, uint8_t *slot)
{
    for (size_t i = 0; i < plan->reads; i++) {
        const struct source_read *r = &plan->read[i];
        uint64_t from = disk_floor(r->offset);
        assert_int_equal(r->at % DISK_PAGE, 0);
        ssize_t n = pread(source.fd[r->file], slot + r->at, disk_span(r->offset, r->length),
                          (off_t)from);
        assert_true(n >= (ssize_t)(r->offset - from + r->length));
    }
}

static void check_rows(const uint8_t *got, size_t stride, const uint8_t *expected,
                       const size_t from_row_bytes_rows[4])
{
    size_t skip = from_row_bytes_rows[0], file_row = from_row_bytes_rows[1];
    for (size_t r = 0; r < from_row_bytes_rows[3]; r++)
        assert_memory_equal(got + r * stride, expected + r * file_row + skip,
                            from_row_bytes_rows[2]);
}

static void check_tile(uint32_t layer, uint32_t expert, uint32_t band,
                       const struct region_tile *t)
{
    uint8_t **part = fixture.part[layer][expert];
    const size_t nibbles = FIXTURE_LATENT / 2, scales = FIXTURE_LATENT / 32;
    check_rows(t->w1, nibbles, part[0] + band * 32 * nibbles,
               (size_t[]){0, nibbles, nibbles, 32});
    check_rows(t->s1, scales, part[1] + band * 32 * scales, (size_t[]){0, scales, scales, 32});
    check_rows(t->w3, nibbles, part[4] + band * 32 * nibbles,
               (size_t[]){0, nibbles, nibbles, 32});
    check_rows(t->s3, scales, part[5] + band * 32 * scales, (size_t[]){0, scales, scales, 32});
    check_rows(t->w2, t->w2_stride, part[2],
               (size_t[]){band * 16, FIXTURE_WIDTH / 2, 16, FIXTURE_LATENT});
    check_rows(t->s2, t->s2_stride, part[3],
               (size_t[]){band, FIXTURE_WIDTH / 32, 1, FIXTURE_LATENT});
}

static void check_load(uint32_t layer, uint32_t expert, uint64_t bands, uint8_t *slot)
{
    struct source_plan plan;
    source_plan(&source, (uint32_t[]){layer, expert}, bands, &plan);
    assert_true(plan.bytes <= source.slot_bytes);
    assert_true(plan.reads <= source.reads_most);
    memset(slot, 0xee, source.slot_bytes);
    fill(&plan, slot);
    for (uint32_t b = 0; b < FIXTURE_BANDS; b++) {
        if (!(bands >> b & 1))
            continue;
        struct region_tile t =
            source_tile(&source, &plan, (uint32_t[]){layer, expert, b}, slot);
        check_tile(layer, expert, b, &t);
    }
}

static void every_tile_lies_where_the_plan_says(void **state)
{
    static const uint64_t mask[] = {0xfff, 0x001, 0x800, 0x03f, 0xfc0, 0x555, 0xaaa, 0x86a};
    uint8_t *slot = aligned_alloc(DISK_PAGE, source.slot_bytes + DISK_PAGE);
    for (uint32_t layer = 1; layer < FIXTURE_LAYERS; layer++)
        for (uint32_t expert = 0; expert < FIXTURE_EXPERTS; expert++)
            for (size_t m = 0; m < sizeof mask / sizeof *mask; m++)
                check_load(layer, expert, mask[m], slot);
    free(slot);
}

int main(void)
{
    const struct CMUnitTest released[] = {
        cmocka_unit_test(a_whole_expert_is_one_read),
        cmocka_unit_test(every_tile_lies_where_the_plan_says),
    };
    const struct CMUnitTest shuffled[] = {
        cmocka_unit_test(every_tile_lies_where_the_plan_says),
    };
    int failed = cmocka_run_group_tests(released, open_released, close_source);
    return failed + cmocka_run_group_tests(shuffled, open_shuffled, close_source);
}
