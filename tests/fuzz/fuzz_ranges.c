/* Lists of layers, experts and bands from flags. */
#include <string.h>

#include "proto/tile.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char text[256];
    uint32_t number[64];
    struct tile_numbers n = {number, 64, 0};
    struct problems p;
    if (length >= sizeof text)
        return 0;
    memcpy(text, bytes, length);
    text[length] = 0;
    problems_init(&p);
    tile_ranges(&n, "bands", text, 1000, &p);
    return 0;
}

size_t fuzz_seed(size_t i, uint8_t *out)
{
    static const char *const seeds[] = {"0-5,7", "1", "999", "0-63", "3-1", "4294967296-"};
    if (i >= sizeof seeds / sizeof seeds[0])
        return 0;
    memcpy(out, seeds[i], strlen(seeds[i]));
    return strlen(seeds[i]);
}
