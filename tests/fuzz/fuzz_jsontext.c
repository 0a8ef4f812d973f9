/* Any bytes as JSON: refused with one sentence, or equal to itself when written and read again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/jsontext.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct problems problems;

    problems_init(&problems);
    json_t *document = jsontext_parse("input", (const char *)data, size, &problems);
    if (problems.count != (document ? 0 : 1) || strlen(problems.text) != problems.length)
        abort();
    if (!document)
        return 0;
    char *text = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_t *again = text ? jsontext_parse("again", text, strlen(text), &problems) : NULL;
    if (!again || !json_equal(document, again))
        abort();
    free(text);
    json_decref(again);
    json_decref(document);
    return 0;
}

size_t fuzz_seed(size_t i, uint8_t *out)
{
    static const char seed[] = "{\"a\":[1,-2.5e3,\"\\u00e9\\n\",null,true,{\"b\":{}}], "
                               "\"\xc3\xa9\": \"\\ud83d\\ude00\"}";

    if (i > 0)
        return 0;
    memcpy(out, seed, sizeof seed - 1);
    return sizeof seed - 1;
}
