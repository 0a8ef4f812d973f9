/* Any text as a size: what is accepted is digits and a unit, and has their value. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "tests/fuzz/fuzz.h"

static void check(const char *text, uint64_t bytes)
{
    static const char units[] = "KMGT";
    char *unit;

    errno = 0;
    unsigned long long value = strtoull(text, &unit, 10);
    if (errno || strspn(text, "0123456789") != (size_t)(unit - text) || unit == text)
        abort();
    if (*unit && (!strchr(units, *unit) || unit[1]))
        abort();
    unsigned shift = *unit ? 10 * (unsigned)(strchr(units, *unit) - units + 1) : 0;
    if (value != bytes >> shift || (bytes & (((uint64_t)1 << shift) - 1)) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t bytes = 77;
    const char *why = NULL;
    char *text = malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    if (options_size(text, &bytes, &why) == 0)
        check(text, bytes);
    else if (bytes != 77 || !why)
        abort();
    free(text);
    return 0;
}

size_t fuzz_seed(size_t i, uint8_t *out)
{
    static const char *const seed[] = {"512", "64K",       "300M",
                                       "24G", "16777215T", "18446744073709551615"};

    if (i >= sizeof seed / sizeof seed[0])
        return 0;
    memcpy(out, seed[i], strlen(seed[i]));
    return strlen(seed[i]);
}
