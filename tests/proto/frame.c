/* Messages in memory: see the header. */
#include "tests/proto/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

void frame_open(struct frame *f, const Kapok__Request *r, size_t payload_bytes)
{
    const char *why = NULL;
    size_t head = msg_request_frame(r), room = (head + payload_bytes + 63) / 64 * 64;
    f->length = head + payload_bytes;
    f->bytes = aligned_alloc(64, room);
    assert_non_null(f->bytes);
    memset(f->bytes, 0, room);
    msg_request_pack(r, f->bytes);
    if (msg_request_open(&f->msg, f->bytes, f->length, &why))
        fail_msg("%s", why);
}

void frame_close(struct frame *f)
{
    msg_close(&f->msg);
    free(f->bytes);
}

void *frame_payload(struct frame *f)
{
    return f->bytes + (f->length - f->msg.payload_bytes);
}
