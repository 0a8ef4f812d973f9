/* See the header; ten rounds, the paper's constants. */
#include "coordinator/philox.h"

#include <string.h>

static void round_once(const uint32_t key[2], uint32_t x[4])
{
    uint64_t a = (uint64_t)0xd2511f53u * x[0];
    uint64_t b = (uint64_t)0xcd9e8d57u * x[2];
    uint32_t y[4] = {(uint32_t)(b >> 32) ^ x[1] ^ key[0], (uint32_t)b,
                     (uint32_t)(a >> 32) ^ x[3] ^ key[1], (uint32_t)a};

    memcpy(x, y, sizeof y);
}

void philox_block(const uint32_t key[2], const uint32_t counter[4], uint32_t ret_word[4])
{
    uint32_t k[2] = {key[0], key[1]};

    memcpy(ret_word, counter, 4 * sizeof *counter);
    for (unsigned i = 0; i < 10; i++) {
        round_once(k, ret_word);
        k[0] += 0x9e3779b9u;
        k[1] += 0xbb67ae85u;
    }
}

double philox_uniform(uint64_t seed, uint32_t choice, uint64_t position)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)position, (uint32_t)(position >> 32), choice, 0};
    uint32_t word[4];

    philox_block(key, counter, word);
    return (double)((((uint64_t)word[1] << 32) | word[0]) >> 11) * 0x1p-53;
}
