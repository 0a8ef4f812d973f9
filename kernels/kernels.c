/* The choice between the tables of the instruction sets. */
#include "kernels/kernels.h"

#include <string.h>

#include "kernels/variants.h"

#if defined(__x86_64__)

static int machine_has(const struct kernels *k)
{
    __builtin_cpu_init();
    if (k == &table_avx512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static const struct kernels *const tables[] = {&table_avx512, &table_avx2, &table_c};

#define FLOOR "this CPU lacks AVX2 or FMA, the least Kapok runs on"

#else

static int machine_has(const struct kernels *k)
{
    return 1;
}

static const struct kernels *const tables[] = {&table_c};

#define FLOOR ""

#endif

#define TABLES (sizeof tables / sizeof tables[0])

const struct kernels *kernels_best(const char *at_most, const char **ret_reason)
{
    size_t i = 0;
    if (!machine_has(&table_c)) {
        *ret_reason = FLOOR;
        return NULL;
    }
    if (!at_most) {
        while (!machine_has(tables[i]))
            i++;
        return tables[i];
    }
    while (i < TABLES && strcmp(tables[i]->name, at_most))
        i++;
    if (i == TABLES)
        *ret_reason = "there is no such instruction set: c, avx2, avx512 (c alone on aarch64)";
    else if (!machine_has(tables[i]))
        *ret_reason = "this CPU does not have that instruction set";
    else
        return tables[i];
    return NULL;
}
