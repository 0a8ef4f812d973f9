/*
 * kernelcheck: every variant of the kernels that this CPU can run against the C definition, bit
 * for bit. Built a second time with the AVX-512 files in emulation (meson.build), so that their
 * bits are known on a machine without AVX-512.
 *
 *     kernelcheck [--slack BYTES] [--every N]
 *     kernelcheck --bench [--threads N] [--set c|avx2|avx512] [KERNEL]
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/variants.h"
#include "tests/kernels/bench.h"
#include "tests/kernels/check.h"

static size_t check_variant(const struct kernels *got, size_t every)
{
    struct check c = {.want = &table_c, .got = got, .random = 1, .every = every};
    check_products(&c);
    check_combinations(&c);
    check_pointwise(&c);
    check_norms(&c);
    check_recurrence(&c);
    check_fixed(&c);
    printf("%s: %zu comparisons, %zu failed\n", got->name, c.cases, c.failures);
    return c.failures;
}

#ifdef KERNELCHECK_EMULATED

int main(void)
{
    return check_variant(&table_avx512, 1) != 0;
}

#else

static int check_all(size_t every)
{
    static const char *const names[] = {"c", "avx2", "avx512"};
    const char *reason = "";
    size_t failures = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct kernels *k = kernels_best(names[i], &reason);
        if (k)
            failures += check_variant(k, every);
        else
            printf("%s: not checked: %s\n", names[i], reason);
    }
    return failures != 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"bench", no_argument, NULL, 'b'},       {"threads", required_argument, NULL, 't'},
        {"slack", required_argument, NULL, 'l'}, {"every", required_argument, NULL, 'e'},
        {"set", required_argument, NULL, 's'},   {0}};
    const char *reason = "", *set = NULL;
    int bench = 0, o;
    size_t threads = 1, every = 1;
    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (o == '?')
            return 2;
        bench |= o == 'b';
        every = o == 'e' ? (size_t)atoi(optarg) : every;
        if (o == 'l')
            check_slack((size_t)atoi(optarg));
        set = o == 's' ? optarg : set;
        threads = o == 't' ? (size_t)atoi(optarg) : threads;
    }
    const struct kernels *k = kernels_best(set, &reason);
    if (!k || threads < 1 || threads > BENCH_THREADS || every < 1) {
        fprintf(stderr, "kernelcheck: %s\n",
                k ? "--threads is 1 to 64, --every at least 1" : reason);
        return 2;
    }
    return bench ? bench_run(k, threads, argv[optind]) : check_all(every);
}

#endif
