/* The head of a region, as it is and under a checksum that is right. */
#include <assert.h>
#include <string.h>

#include "proto/region.h"
#include "tests/fuzz/fuzz.h"

/* Everything that is done with a head that was accepted. */
static void use(const struct region *g)
{
    struct tile_set tiles;
    struct shape s;
    uint32_t place[3];
    region_shape(g, &s);
    region_tiles(g, &tiles);
    assert(!tile_set_check(&tiles, &s));
    region_place(g, g->tiles - 1, place);
    assert(region_rank(g, place[0], place[1], place[2]) == g->tiles - 1);
    assert(region_bytes(g) > region_sum_offset(0));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    uint8_t block[REGION_BLOCK] = {0};
    struct region g;
    const char *why;
    memcpy(block, bytes, length < sizeof block ? length : sizeof block);
    if (!region_decode(&g, block, &why))
        use(&g);
    sum_of(block, sizeof block - SUM_BYTES, block + sizeof block - SUM_BYTES);
    if (!region_decode(&g, block, &why))
        use(&g);
    return 0;
}

size_t fuzz_seed(size_t i, uint8_t *out)
{
    struct checkpoint c = {.shape = {.layers = 93,
                                     .dense_layers = 1,
                                     .experts = 896,
                                     .chosen = 16,
                                     .latent = 3584,
                                     .expert_width = 3072,
                                     .band = 256,
                                     .bands = 12,
                                     .situ = {4, 25}}};
    struct tile_set t;
    struct region g;
    struct problems p;
    if (i > 1)
        return 0;
    problems_init(&p);
    tile_set_parse(&t, &c.shape, i ? "1-5,9" : NULL, i ? "3,7-9" : NULL, i ? "0-5" : NULL, &p);
    region_init(&g, &c, &t, true, &p);
    g.complete = i;
    region_encode(&g, out);
    return REGION_BLOCK;
}
