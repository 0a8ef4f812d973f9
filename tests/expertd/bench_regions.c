/*
 * How evenly several disks are kept busy: the time of a layer with 1, 2, 3, 4, 6 and 12 regions
 * on throttled devices of one rate, cut by bands and, for comparison, by whole experts.
 *
 *     bench_regions [--rate 1000000] [--tokens 20]
 *
 * The model is the fixture's (12 experts, 4 of them for each row, 12 bands); what is measured
 * is the waiting, not the arithmetic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/thread.h"
#include "tests/expertd/fixture.h"
#include "tests/expertd/throttled_disk.h"

#define PARTS_MOST 12

struct cut { /* the regions of one layout */
    char path[PARTS_MOST][160];
    const char *region[PARTS_MOST];
    size_t parts;
};

static void one_part(const struct fixture *f, struct cut *c, size_t part, bool by_bands)
{
    char name[32], list[64] = "";
    size_t each = 12 / c->parts;
    snprintf(name, sizeof name, "region-%zu", part);
    if (by_bands)
        snprintf(list, sizeof list, "%zu-%zu", part * each, (part + 1) * each - 1);
    for (size_t i = part; !by_bands && i < 12; i += c->parts)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%zu", i > part ? "," : "",
                 i);
    fixture_pack(f, name, NULL, by_bands ? NULL : list, by_bands ? list : NULL);
    snprintf(c->path[part], sizeof c->path[part], "%s/%s", f->folder, name);
    c->region[part] = c->path[part];
}

/* Seconds a layer takes with nothing cached. */
static double measure(const struct fixture *f, struct cut *c, uint64_t tokens)
{
    struct serving_options o = fixture_options(f);
    struct asker a;
    int64_t sum[FIXTURE_LATENT];
    o.checkpoint = NULL;
    o.region = c->region;
    o.regions = c->parts;
    o.memory = (uint64_t)16 << 20;
    o.rows = 1;
    o.requests = 1;
    double seconds = 0;
    for (uint64_t t = 0; t < tokens; t++) { /* a new server each time: an empty cache */
        struct fixture_question q;
        struct serving *s = fixture_serve(&o);
        fixture_asker_open(&a, f, serving_address(s));
        asker_counter(&a, "requests"); /* the link is up */
        fixture_ask_random(&q, 1, 1, (uint32_t[]){0, FIXTURE_EXPERTS}, (unsigned)t);
        double before = thread_now();
        assert_int_equal(fixture_ask(&a, &q, sum, NULL), 0);
        seconds += thread_now() - before;
        fixture_question_free(&q);
        asker_close(&a);
        serving_close(s);
    }
    return seconds / (double)tokens;
}

static void compare(const struct fixture *f, uint64_t tokens)
{
    static const size_t parts[] = {1, 2, 3, 4, 6, 12};
    double alone = 0;
    printf("regions   by bands: ms a layer, of 1/R    by experts: ms a layer, of 1/R\n");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        double seconds[2];
        for (int by_bands = 0; by_bands < 2; by_bands++) {
            struct cut c = {.parts = parts[i]};
            for (size_t p = 0; p < c.parts; p++)
                one_part(f, &c, p, by_bands);
            seconds[by_bands] = measure(f, &c, tokens);
        }
        if (!i)
            alone = seconds[1];
        double even = alone / (double)parts[i];
        printf("%4zu      %10.2f  %6.1f %%              %10.2f  %6.1f %%\n", parts[i],
               1e3 * seconds[1], 100 * seconds[1] / even, 1e3 * seconds[0],
               100 * seconds[0] / even);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    uint64_t rate, tokens;
    const struct option table[] = {
        {"rate", OPTION_COUNT, &rate, "1000000", "BYTES", "a second of each device", 1},
        {"tokens", OPTION_COUNT, &tokens, "20", "N", "to ask for", 1, 10000},
    };
    const struct options_program program = {"bench_regions", "Measures throttled regions.",
                                            NULL, table, sizeof table / sizeof *table};
    struct options options;
    static struct fixture f;
    options_parse(&program, argc, argv, &options);
    fixture_make(&f, FIXTURE_RELEASED, NULL);
    throttled_disk_rate((double)rate);
    compare(&f, tokens);
    fixture_remove(&f);
    options_release(&options);
    return 0;
}
