/*
 * The checks of a header. Everything in it is input from outside: each tensor is checked for
 * itself, then all of them, sorted by where they begin, for gaps and overlaps. All problems of
 * a shard are said, up to the room of the list.
 */
#include "base/safetensors_header.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsontext.h"

#define KEYS 3 /* of a tensor: dtype, shape, data_offsets */

struct parsing {
    const char *file;
    uint64_t data_start, data_bytes; /* in the file */
    struct problems *problems;
};

/* What the release uses has a name of its own; the rest is known only by its width. */
static const struct dtype {
    const char *name;
    enum safetensors_dtype dtype;
    unsigned bytes;
} dtypes[] = {
    {"F32", SAFETENSORS_F32, 4},       {"BF16", SAFETENSORS_BF16, 2},
    {"U8", SAFETENSORS_U8, 1},         {"BOOL", SAFETENSORS_OTHER, 1},
    {"I8", SAFETENSORS_OTHER, 1},      {"F8_E4M3", SAFETENSORS_OTHER, 1},
    {"F8_E5M2", SAFETENSORS_OTHER, 1}, {"F8_E8M0", SAFETENSORS_OTHER, 1},
    {"I16", SAFETENSORS_OTHER, 2},     {"U16", SAFETENSORS_OTHER, 2},
    {"F16", SAFETENSORS_OTHER, 2},     {"I32", SAFETENSORS_OTHER, 4},
    {"U32", SAFETENSORS_OTHER, 4},     {"I64", SAFETENSORS_OTHER, 8},
    {"U64", SAFETENSORS_OTHER, 8},     {"F64", SAFETENSORS_OTHER, 8},
};

XXH128_hash_t safetensors_header_name(const char *name)
{
    return XXH3_128bits(name, strlen(name));
}

/* "FILE: tensor NAME: expected EXPECTED, found <value>". */
static int wrong(const struct parsing *p, const char *name, const char *expected,
                 const json_t *found)
{
    char value[64];
    size_t length = found ? json_dumpb(found, value, sizeof value, JSON_ENCODE_ANY) : 0;
    int shown = (int)(length < sizeof value ? length : sizeof value);

    problems_add(p->problems, "%s: tensor %.200s: expected %s, found %.*s%s", p->file, name,
                 expected, found ? shown : 7, found ? value : "nothing",
                 length > sizeof value ? "..." : "");
    return -EINVAL;
}

static const struct dtype *find_dtype(const json_t *value)
{
    const char *text = json_string_value(value);

    for (size_t i = 0; text && i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (!strcmp(text, dtypes[i].name))
            return &dtypes[i];
    return NULL;
}

static int parse_shape(const struct parsing *p, const char *name, const json_t *shape,
                       struct safetensors_tensor *t, uint64_t *elements)
{
    size_t dims = json_array_size(shape);

    if (!json_is_array(shape) || dims > SAFETENSORS_DIMS)
        return wrong(p, name, "a shape of at most 4 numbers", shape);
    t->dims = (uint8_t)dims;
    *elements = 1;
    for (size_t i = 0; i < dims; i++) {
        const json_t *dim = json_array_get(shape, i);
        json_int_t size = json_integer_value(dim);
        if (!json_is_integer(dim) || size < 0 || size > UINT32_MAX)
            return wrong(p, name, "a shape of whole numbers from 0 to 4294967295", shape);
        t->shape[i] = (uint32_t)size;
        if (__builtin_mul_overflow(*elements, (uint64_t)size, elements))
            return wrong(p, name, "a shape of fewer than 2^64 elements", shape);
    }
    return 0;
}

/* [begin, end) within the data. */
static int parse_offsets(const struct parsing *p, const char *name, const json_t *offsets,
                         struct safetensors_tensor *t)
{
    const json_t *first = json_array_get(offsets, 0), *second = json_array_get(offsets, 1);
    json_int_t begin = json_integer_value(first), end = json_integer_value(second);
    char expected[80];

    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(second) ||
        begin < 0 || end < begin)
        return wrong(p, name, "data_offsets of two whole numbers in order", offsets);
    if ((uint64_t)end > p->data_bytes) {
        snprintf(expected, sizeof expected, "data_offsets within the file's %" PRIu64 " bytes",
                 p->data_bytes);
        return wrong(p, name, expected, offsets);
    }
    t->offset = p->data_start + (uint64_t)begin;
    t->bytes = (uint64_t)(end - begin);
    return 0;
}

static int parse_tensor(const struct parsing *p, const char *name, const json_t *value,
                        struct safetensors_tensor *t)
{
    uint64_t elements = 0, bytes;
    const json_t *dtype_name = json_object_get(value, "dtype");
    const json_t *shape = json_object_get(value, "shape");
    const json_t *offsets = json_object_get(value, "data_offsets");

    if (json_object_size(value) != KEYS || !dtype_name || !shape || !offsets)
        return wrong(p, name, "an object of dtype, shape and data_offsets", value);
    const struct dtype *dtype = find_dtype(dtype_name);
    if (!dtype)
        return wrong(p, name, "a known dtype", dtype_name);
    t->dtype = (uint8_t)dtype->dtype;
    int error = parse_shape(p, name, shape, t, &elements);
    if (!error)
        error = parse_offsets(p, name, offsets, t);
    if (error)
        return error;
    if (__builtin_mul_overflow(elements, (uint64_t)dtype->bytes, &bytes))
        return wrong(p, name, "a shape of fewer than 2^64 bytes", shape);
    if (bytes != t->bytes) {
        problems_add(p->problems,
                     "%s: tensor %.200s: expected %" PRIu64
                     " bytes for its dtype and shape, found %" PRIu64,
                     p->file, name, bytes, t->bytes);
        return -EINVAL;
    }
    return 0;
}

/* --- all of them together --- */

struct place {
    uint64_t begin, end;
    const char *name;
};

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static int check_cover(const struct parsing *p, struct place *place, size_t count)
{
    uint64_t at = p->data_start, end = p->data_start + p->data_bytes;
    const char *before = "the header";
    int error = 0;

    qsort(place, count, sizeof *place, by_place);
    for (size_t i = 0; i < count; i++) {
        if (place[i].begin != at) {
            problems_add(p->problems,
                         "%s: tensor %.200s: expected to begin at byte %" PRIu64
                         ", the end of %.200s, found %" PRIu64 " (%s)",
                         p->file, place[i].name, at, before, place[i].begin,
                         place[i].begin < at ? "overlap" : "gap");
            error = -EINVAL;
        }
        if (place[i].end > at) {
            at = place[i].end;
            before = place[i].name;
        }
    }
    if (at != end) {
        problems_add(p->problems,
                     "%s: expected the tensors to end with the file at byte %" PRIu64
                     ", found %" PRIu64,
                     p->file, end, at);
        error = -EINVAL;
    }
    return error;
}

/* Fills entry[] and place[], each with room for every key of the tree. */
static int parse_tensors(const struct parsing *p, json_t *tree, struct safetensors_entry *entry,
                         struct place *place, size_t *ret_count)
{
    const char *name;
    json_t *value;
    size_t count = 0;
    int error = 0;

    json_object_foreach(tree, name, value)
    {
        struct safetensors_tensor *t = &entry[count].tensor;
        if (!strcmp(name, "__metadata__"))
            continue; /* its maker's free text, on which nothing depends */
        if (parse_tensor(p, name, value, t) < 0) {
            error = -EINVAL;
            continue;
        }
        entry[count].name = safetensors_header_name(name);
        place[count].begin = t->offset;
        place[count].end = t->offset + t->bytes;
        place[count++].name = name;
    }
    /* Where a tensor is missing, gaps would only repeat it. */
    if (!error)
        error = check_cover(p, place, count);
    *ret_count = count;
    return error;
}

static int parse_tree(const struct parsing *p, json_t *tree,
                      struct safetensors_header *ret_header)
{
    size_t room = json_object_size(tree), count = 0;
    int error = -ENOMEM;

    if (!json_is_object(tree)) {
        problems_add(p->problems, "%s: expected a JSON object as header, found an array",
                     p->file);
        return -EINVAL;
    }
    struct safetensors_entry *entry = calloc(room + 1, sizeof *entry);
    struct place *place = calloc(room + 1, sizeof *place);
    if (entry && place)
        error = parse_tensors(p, tree, entry, place, &count);
    free(place);
    if (error) {
        free(entry);
        return error;
    }
    *ret_header = (struct safetensors_header){.entry = entry, .count = count};
    return 0;
}

int safetensors_header_parse(const struct safetensors_json *json, struct jsontext_arena *arena,
                             struct safetensors_header *ret_header, struct problems *p)
{
    struct parsing parsing = {.file = json->file,
                              .data_start = SAFETENSORS_LENGTH_BYTES + json->length,
                              .data_bytes = json->data_bytes,
                              .problems = p};

    jsontext_arena_enter(arena);
    json_t *tree = jsontext_parse(json->file, json->text, json->length, p);
    int error = tree ? parse_tree(&parsing, tree, ret_header) : -EINVAL;
    jsontext_arena_leave(arena); /* and with it the tree */
    return error;
}
