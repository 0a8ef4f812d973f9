/* Command lines of a pipeline: every band and layer given once, as evenly as they go. */
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
#include "client/layout.h"
#include "tests/proto/tiny.h"

static char folder[] = "/tmp/kapok-layout-XXXXXX";
static char config[64];
static struct rundir rundir;

static int make_folder(void **state)
{
    if (!mkdtemp(folder))
        return -1;
    snprintf(config, sizeof config, "%s/config.json", folder);
    rundir_name(&rundir, "/run/x");
    return file_write(config, tiny_config, strlen(tiny_config), 0600);
}

static int remove_folder(void **state)
{
    unlink(config);
    return rmdir(folder);
}

/* The value behind a flag, NULL without it. */
static const char *value_of(const struct child *c, const char *flag)
{
    for (unsigned i = 1; i + 1 < c->arguments; i++)
        if (!strcmp(c->argument[i], flag))
            return c->argument[i + 1];
    return NULL;
}

static struct layout_options options(uint64_t expertds, uint64_t stages)
{
    return (struct layout_options){.checkpoint = folder,
                                   .listen = "127.0.0.1:0",
                                   .expertds = expertds,
                                   .stages = stages,
                                   .log = "info"};
}

static void make(struct layout *l, const struct layout_options *o)
{
    struct problems p;
    problems_init(&p);
    if (layout_init(l, o, &rundir, &p))
        fail_msg("%s", p.text);
    layout_stages(l, &rundir);
    layout_coordinator(l, &rundir);
}

/* The lists are ranges that follow each other from 0 to `end`, their lengths differ by at most
 * one. */
static void evenly(struct layout *l, unsigned first, unsigned count, const char *flag,
                   unsigned end)
{
    unsigned next = 0, least = UINT32_MAX, most = 0;
    for (unsigned i = first; i < first + count; i++) {
        unsigned a, b;
        assert_int_equal(sscanf(value_of(layout_child(l, i), flag), "%u-%u", &a, &b), 2);
        assert_int_equal(a, next);
        next = b + 1;
        least = next - a < least ? next - a : least;
        most = next - a > most ? next - a : most;
    }
    assert_int_equal(next, end);
    assert_true(most - least <= 1);
}

static void bands_and_layers_are_split_evenly(void **state)
{
    for (unsigned expertds = 1; expertds <= 12; expertds++)
        for (unsigned stages = 1; stages <= 7; stages++) {
            struct layout l;
            struct layout_options o = options(expertds, stages);
            make(&l, &o);
            evenly(&l, 0, expertds, "--bands", 12);
            evenly(&l, expertds, stages, "--layers", 7);
            assert_null(layout_child(&l, expertds + stages + 1));
            layout_fini(&l);
        }
}

static void each_is_told_of_those_before(void **state)
{
    struct layout l;
    struct layout_options o = options(2, 2);
    o.threads = 3;
    o.isa = "avx2";
    o.memory = 16000;
    o.prefill_chunk = 5;
    o.buffered = true;
    make(&l, &o);
    const struct child *trunk = layout_child(&l, 2), *coordinator = layout_child(&l, 4);
    unsigned expertds = 0, trunks = 0;
    for (unsigned i = 0; i < trunk->arguments; i++)
        expertds += !strcmp(trunk->argument[i], "--expertd");
    for (unsigned i = 0; i < coordinator->arguments; i++)
        trunks += !strcmp(coordinator->argument[i], "--trunk");
    assert_int_equal(expertds, 2);
    assert_int_equal(trunks, 2);
    assert_string_equal(value_of(trunk, "--threads"), "3");
    assert_string_equal(value_of(trunk, "--isa"), "avx2");
    assert_string_equal(value_of(trunk, "--memory"), "7000");
    assert_string_equal(value_of(layout_child(&l, 0), "--memory"), "1000");
    assert_string_equal(value_of(trunk, "--secret"), "/run/x/secret");
    assert_string_equal(value_of(coordinator, "--prefill-chunk"), "5");
    assert_string_equal(value_of(coordinator, "--listen"), "127.0.0.1:0");
    assert_null(value_of(coordinator, "--threads"));
    layout_fini(&l);
}

static void regions_go_to_expertds(void **state)
{
    static const char *item[] = {"/mnt/a", "/mnt/b", "/dev/c"};
    struct layout l;
    struct layout_options o = options(0, 1);
    o.regions = (struct option_list){item, 3};
    make(&l, &o);
    assert_int_equal(l.expertds, 3); /* one for each */
    for (unsigned i = 0; i < 3; i++) {
        const struct child *c = layout_child(&l, i);
        assert_string_equal(value_of(c, "--region"), item[i]);
        assert_null(value_of(c, "--checkpoint"));
        assert_null(value_of(c, "--bands"));
    }
    assert_string_equal(value_of(layout_child(&l, 3), "--checkpoint"), folder);
    layout_fini(&l);
    o.expertds = 2;
    make(&l, &o);
    assert_string_equal(value_of(layout_child(&l, 0), "--region"), "/mnt/a");
    assert_string_equal(value_of(layout_child(&l, 1), "--region"), "/mnt/b");
    assert_string_equal(l.expertd[1].argument[l.expertd[1].arguments - 1], "/dev/c");
    layout_fini(&l);
    o.expertds = 4;
    struct problems p;
    problems_init(&p);
    assert_int_equal(layout_init(&l, &o, &rundir, &p), -EINVAL);
    assert_non_null(strstr(p.text, "expected 1 to 3 (there are 3 regions)"));
    layout_fini(&l);
}

static void without_a_number_there_is_one_expertd(void **state)
{
    struct layout l;
    struct layout_options o = options(0, 1);
    make(&l, &o);
    assert_int_equal(l.expertds, 1);
    layout_fini(&l);
}

static void refused(uint64_t expertds, uint64_t stages, const char *sentence)
{
    struct layout l;
    struct layout_options o = options(expertds, stages);
    struct problems p;
    problems_init(&p);
    assert_int_equal(layout_init(&l, &o, &rundir, &p), -EINVAL);
    if (!strstr(p.text, sentence))
        fail_msg("'%s' is not in: %s", sentence, p.text);
    layout_fini(&l);
}

static void more_processes_than_parts_are_refused(void **state)
{
    refused(13, 1, "--expertds 13: expected 1 to 12 (there are 12 bands)");
    refused(1, 8, "--stages 8: expected 1 to 7 (there are 7 layers)");
}

static void a_folder_without_a_model_is_refused(void **state)
{
    struct layout l;
    struct layout_options o = options(1, 1);
    struct problems p;
    o.checkpoint = "/nonexistent";
    problems_init(&p);
    assert_int_equal(layout_init(&l, &o, &rundir, &p), -ENOENT);
    assert_non_null(strstr(p.text, "/nonexistent/config.json"));
    layout_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bands_and_layers_are_split_evenly),
        cmocka_unit_test(each_is_told_of_those_before),
        cmocka_unit_test(regions_go_to_expertds),
        cmocka_unit_test(without_a_number_there_is_one_expertd),
        cmocka_unit_test(more_processes_than_parts_are_refused),
        cmocka_unit_test(a_folder_without_a_model_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
