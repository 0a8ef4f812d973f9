/* Server-sent events as `kapok run` reads them, in pieces of many sizes. */
#include <string.h>

#include "client/events.h"
#include "tests/fuzz/fuzz.h"

static void take(void *context, const char *text, size_t length)
{
    size_t *taken = context;
    if (text[length])
        __builtin_trap(); /* it is promised to end in a zero */
    *taken += length;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct events e;
    size_t taken = 0, piece = length ? 1 + bytes[0] % 16 : 1;
    events_init(&e, take, &taken);
    for (size_t at = 0; at < length; at += piece)
        events_feed(&e, (const char *)bytes + at, length - at < piece ? length - at : piece);
    if (taken > length)
        __builtin_trap();
    events_fini(&e);
    return 0;
}

size_t fuzz_seed(size_t i, uint8_t *out)
{
    static const char seed[] =
        ": waiting\n\ndata: {\"choices\": [{\"text\": \" Paris\"}]}\r\n\r\n"
        "event: x\ndata:\ndata:y\n\ndata: [DONE]\n\n";
    if (i)
        return 0;
    memcpy(out, seed, sizeof seed - 1);
    return sizeof seed - 1;
}
