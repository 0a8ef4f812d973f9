/* config.json. */
#include <string.h>

#include "proto/shape.h"
#include "tests/fuzz/fuzz.h"
#include "tests/proto/tiny.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct shape s;
    struct problems p;
    problems_init(&p);
    shape_parse(&s, "config.json", (const char *)bytes, length, &p);
    return 0;
}

size_t fuzz_seed(size_t i, uint8_t *out)
{
    if (i)
        return 0;
    memcpy(out, tiny_config, strlen(tiny_config));
    return strlen(tiny_config);
}
