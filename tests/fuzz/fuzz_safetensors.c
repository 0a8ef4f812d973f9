/*
 * Any bytes as a shard's header: two of data length, the rest JSON. What is accepted must keep
 * what the index promises: tensors inside the file that together are all of its data.
 */
#include <stdlib.h>
#include <string.h>

#include "base/safetensors_header.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct safetensors_header *header, uint64_t start, uint64_t bytes)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < header->count; i++) {
        const struct safetensors_tensor *t = &header->entry[i].tensor;
        if (t->offset < start || t->bytes > bytes || t->offset + t->bytes > start + bytes)
            abort();
        if (t->dims > SAFETENSORS_DIMS || t->dtype > SAFETENSORS_OTHER)
            abort();
        sum += t->bytes;
    }
    if (sum != bytes)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct jsontext_arena arena;
    static struct problems problems;
    struct safetensors_header header;

    if (size <= 2)
        return 0;
    if (!arena.start && jsontext_arena_open(&arena, (size_t)64 << 20) < 0)
        abort();
    struct safetensors_json json = {.file = "shard",
                                    .text = malloc(size - 2),
                                    .length = size - 2,
                                    .data_bytes = (uint64_t)data[0] | (uint64_t)data[1] << 8};
    memcpy(json.text, data + 2, json.length);
    problems_init(&problems);
    int error = safetensors_header_parse(&json, &arena, &header, &problems);
    free(json.text);
    if ((error == 0) != (problems.count == 0) || strlen(problems.text) != problems.length)
        abort();
    if (error == 0) {
        check(&header, SAFETENSORS_LENGTH_BYTES + json.length, json.data_bytes);
        free(header.entry);
    }
    return 0;
}

size_t fuzz_seed(size_t i, uint8_t *out)
{
    /* Each begins with the two bytes of the data's length; the zero is one of them. */
    static const char two_tensors[] =
        "\x10\0{\"__metadata__\":{\"format\":\"pt\"},"
        "\"m\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
        "\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}";
    static const char nothing[] =
        "\0\0{\"e\":{\"dtype\":\"U8\",\"shape\":[0,7],\"data_offsets\":[0,0]}}";
    static const char overlap[] =
        "\x09\0{\"b\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[3,9]},"
        "\"a\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[0,4]}}";
    static const struct {
        const char *bytes;
        size_t length;
    } seed[] = {{two_tensors, sizeof two_tensors - 1},
                {nothing, sizeof nothing - 1},
                {overlap, sizeof overlap - 1}};

    if (i >= sizeof seed / sizeof seed[0])
        return 0;
    memcpy(out, seed[i].bytes, seed[i].length);
    return seed[i].length;
}
