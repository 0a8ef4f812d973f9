/* Replies as an asker reads them: the frame, then the tiles of Hello. */
#include "proto/msg.h"
#include "proto/tile_hello.h"
#include "tests/fuzz/fuzz.h"
#include "tests/proto/samples.h"
#include "tests/proto/tiny.h"

static void read_hello(const Kapok__HelloReply *h, const struct shape *s)
{
    struct tile_set set;
    struct tile_coverage c;
    const char *why;
    if (tile_hello_read(&set, h, s, &why) || tile_coverage_open(&c, s, 0, s->layers))
        return;
    tile_coverage_add(&c, &set);
    tile_coverage_close(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct shape shape;
    struct msg m;
    const char *why;
    if (!shape.layers)
        shape = tiny_shape();
    if (msg_reply_open(&m, bytes, length, &why))
        return 0;
    if (m.reply->body_case == KAPOK__REPLY__BODY_HELLO)
        read_hello(m.reply->hello, &shape);
    msg_close(&m);
    return 0;
}

static size_t good_hello(uint8_t *out)
{
    Kapok__TileBox box = KAPOK__TILE_BOX__INIT, *boxes[] = {&box};
    Kapok__HelloReply h = KAPOK__HELLO_REPLY__INIT;
    Kapok__Reply r = KAPOK__REPLY__INIT;
    box.layer_first = 1;
    box.layer_end = 7;
    box.expert_end = 32;
    box.bands = 0xfff;
    h.n_tiles = 1;
    h.tiles = boxes;
    r.body_case = KAPOK__REPLY__BODY_HELLO;
    r.hello = &h;
    msg_reply_pack(&r, out);
    return msg_reply_frame(&r);
}

size_t fuzz_seed(size_t i, uint8_t *out)
{
    size_t count;
    const struct samples_reply *sample = samples_replies(&count);
    if (i == count)
        return good_hello(out);
    if (i > count)
        return 0;
    msg_reply_pack(&sample[i].message, out);
    return msg_reply_frame(&sample[i].message);
}
