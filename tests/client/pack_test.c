/*
 * kapok pack and kapok verify: a region is what the plain packer of the fixture makes of
 * memory, byte for byte; packing goes on where it stopped, takes nothing for its own that is
 * not, and finds what it did not write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "client/pack.h"
#include "client/region_verify.h"
#include "client/sums_file.h"
#include "tests/expertd/fixture.h"

static struct fixture fixture;
static struct checkpoint checkpoint;

static int make(void **state)
{
    struct problems p;
    problems_init(&p);
    fixture_make(&fixture, FIXTURE_SHUFFLED, NULL);
    assert_int_equal(checkpoint_open(&checkpoint, fixture.folder, &p), 0);
    return 0;
}

static int remove_it(void **state)
{
    checkpoint_close(&checkpoint);
    fixture_remove(&fixture);
    return 0;
}

static void path_of(char path[160], const char *name)
{
    snprintf(path, 160, "%s/%s", fixture.folder, name);
}

static int pack_bands(const char *path, const char *bands, bool overwrite, struct problems *p)
{
    struct region_file_options o = {
        .path = path, .buffered = fixture.buffered, .overwrite = overwrite};
    struct tile_set tiles;
    problems_init(p);
    assert_int_equal(tile_set_parse(&tiles, &checkpoint.shape, NULL, NULL, bands, p), 0);
    return pack(&checkpoint, &tiles, &o, p);
}

static void same_files(const char *a, const char *b)
{
    char *x, *y;
    size_t n, m;
    assert_int_equal(file_read(a, 1 << 24, &x, &n), 0);
    assert_int_equal(file_read(b, 1 << 24, &y, &m), 0);
    assert_int_equal(n, m);
    /* The count of tiles done does not matter in a finished head, and is under its checksum. */
    assert_memory_equal(x + REGION_BLOCK, y + REGION_BLOCK, n - REGION_BLOCK);
    free(x);
    free(y);
}

static void a_region_is_what_it_should_be(void **state)
{
    char path[160], plain[160];
    struct problems p;
    path_of(path, "packed");
    path_of(plain, "plain");
    fixture_pack(&fixture, "plain", NULL, NULL, "0,3-5,11");
    assert_int_equal(pack_bands(path, "0,3-5,11", false, &p), 0);
    same_files(path, plain);
    assert_int_equal(pack_bands(path, "0,3-5,11", false, &p), 0); /* nothing left to do */
    same_files(path, plain);
}

/* A draft whose last tiles were never written. */
static void it_goes_on_where_it_stopped(void **state)
{
    char path[160], plain[160];
    uint8_t block[REGION_BLOCK];
    struct problems p;
    struct region g;
    const char *why;
    path_of(path, "stopped");
    path_of(plain, "plain");
    fixture_pack(&fixture, "plain", NULL, NULL, NULL);
    fixture_pack(&fixture, "stopped", NULL, NULL, NULL);
    FILE *f = fopen(path, "rb+");
    assert_int_equal(fread(block, 1, sizeof block, f), sizeof block);
    assert_int_equal(region_decode(&g, block, &why), 0);
    g.complete = false;
    g.done = g.tiles / 2;
    region_encode(&g, block);
    rewind(f);
    fwrite(block, 1, sizeof block, f);
    for (uint64_t rank = g.done; rank < g.tiles; rank++) {
        fseek(f, (long)region_tile_offset(&g, rank), SEEK_SET);
        fwrite(block, 1, sizeof block, f);
        fseek(f, (long)region_sum_offset(rank), SEEK_SET);
        fwrite("0123456789abcdef", 1, SUM_BYTES, f);
    }
    fclose(f);
    assert_int_equal(pack_bands(path, NULL, false, &p), 0);
    same_files(path, plain);
}

static void what_was_not_written_is_found_and_packed_again(void **state)
{
    char path[160], plain[160];
    struct problems p;
    path_of(path, "hurt");
    path_of(plain, "plain");
    fixture_pack(&fixture, "plain", NULL, NULL, "2-3");
    assert_int_equal(pack_bands(path, "2-3", false, &p), 0);
    fixture_flip(path, 8 * 60000);
    assert_int_equal(pack_bands(path, "2-3", false, &p), -EIO);
    assert_non_null(strstr(p.text, "1 tiles do not read"));
    assert_int_equal(pack_bands(path, "2-3", false, &p), 0);
    same_files(path, plain);
}

static void other_things_are_not_overwritten(void **state)
{
    char path[160], region[160];
    struct problems p;
    path_of(path, "precious");
    path_of(region, "other");
    assert_int_equal(file_write(path, "dear diary, today I ", 20, 0644), 0);
    assert_int_equal(pack_bands(path, "1", false, &p), -EEXIST);
    assert_non_null(strstr(p.text, "no region"));
    fixture_pack(&fixture, "other", NULL, NULL, "0-4");
    assert_int_equal(pack_bands(region, "0-5", false, &p), -EEXIST);
    assert_non_null(strstr(p.text, "another region"));
    assert_int_equal(pack_bands(region, "0-5", true, &p), 0);
    assert_int_equal(pack_bands(path, "1", true, &p), 0);
}

static uint64_t count_bad(const char *path)
{
    struct region_file_options o = {.path = path, .buffered = fixture.buffered};
    struct region_file f;
    struct memory m;
    struct problems p;
    uint64_t bad = 0, first = 0;
    problems_init(&p);
    memory_init(&m, 0);
    assert_int_equal(region_file_read(&f, &o, &m, &p), 0);
    assert_int_equal(region_verify(&f, &m, &bad, &first, &p), 0);
    region_file_close(&f);
    memory_fini(&m);
    return bad;
}

static void verifying_a_region(void **state)
{
    char path[160];
    path_of(path, "verified");
    fixture_pack(&fixture, "verified", NULL, NULL, NULL);
    assert_int_equal(count_bad(path), 0);
    fixture_flip(path, 8 * 199801);
    fixture_flip(path, 8 * 300002 + 7);
    assert_int_equal(count_bad(path), 2);
}

static void verifying_a_checkpoint(void **state)
{
    char path[160], plain[160], shard[160];
    struct sums_file_result result;
    struct problems p;
    uint64_t at;
    problems_init(&p);
    path_of(plain, "plain-sums");
    path_of(path, REGION_SUMS);
    assert_int_equal(sums_file_verify(&checkpoint, fixture.buffered, false, &result, &p), 0);
    assert_true(result.written);
    assert_int_equal(result.bad, 0);
    assert_int_equal(rename(path, plain), 0);
    fixture_pack(&fixture, REGION_SUMS, NULL, NULL, NULL);
    same_files(path, plain);
    assert_int_equal(sums_file_verify(&checkpoint, fixture.buffered, false, &result, &p), 0);
    assert_false(result.written);
    fixture_locate(&fixture, 2, 7, shard, &at);
    fixture_flip(shard, at * 8 + 12345);
    assert_int_equal(sums_file_verify(&checkpoint, fixture.buffered, false, &result, &p), 0);
    assert_int_equal(result.bad, 1);
    assert_non_null(strstr(p.text, "layer 2 expert 7 band"));
    fixture_flip(shard, at * 8 + 12345);
}

static void a_nan_scale_is_not_packed(void **state)
{
    struct fixture f;
    struct checkpoint c;
    struct problems p;
    struct tile_set tiles;
    struct sums_file_result result;
    char path[160];
    fixture_make(&f, FIXTURE_RELEASED, NULL);
    fixture_poison(&f, 2, 8, 255);
    problems_init(&p);
    assert_int_equal(checkpoint_open(&c, f.folder, &p), 0);
    snprintf(path, sizeof path, "%s/region", f.folder);
    struct region_file_options o = {.path = path, .buffered = f.buffered};
    assert_int_equal(tile_set_parse(&tiles, &c.shape, NULL, NULL, "0-1", &p), 0);
    assert_int_equal(pack(&c, &tiles, &o, &p), -EDOM);
    assert_non_null(strstr(p.text, "layer 2 expert 8 band 0"));
    assert_int_equal(sums_file_verify(&c, f.buffered, false, &result, &p), 0);
    assert_int_equal(result.bad, 1);
    assert_false(result.written);
    checkpoint_close(&c);
    fixture_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_is_what_it_should_be),
        cmocka_unit_test(it_goes_on_where_it_stopped),
        cmocka_unit_test(what_was_not_written_is_found_and_packed_again),
        cmocka_unit_test(other_things_are_not_overwritten),
        cmocka_unit_test(verifying_a_region),
        cmocka_unit_test(verifying_a_checkpoint),
        cmocka_unit_test(a_nan_scale_is_not_packed),
    };
    return cmocka_run_group_tests(tests, make, remove_it);
}
