/*
 * Frames. The first eight bytes and the length are looked at before protobuf-c sees anything; a
 * header that decodes but holds a body the enum does not know is the business of whoever asked.
 */
#include "proto/msg.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#define PREFIX 8 /* magic and header bytes */

static size_t frame_bytes(size_t header)
{
    return (PREFIX + header + MSG_ALIGN - 1) / MSG_ALIGN * MSG_ALIGN;
}

/* Everything of a frame but the header's bytes; gives where those go. */
static uint8_t *frame_begin(uint8_t *out, size_t header)
{
    assert(header <= MSG_HEADER_MOST);
    uint32_t prefix[2] = {htole32(MSG_MAGIC), htole32((uint32_t)header)};
    memset(out, 0, frame_bytes(header));
    memcpy(out, prefix, sizeof prefix);
    return out + PREFIX;
}

size_t msg_request_frame(const Kapok__Request *r)
{
    return frame_bytes(kapok__request__get_packed_size(r));
}

size_t msg_reply_frame(const Kapok__Reply *r)
{
    return frame_bytes(kapok__reply__get_packed_size(r));
}

void msg_request_pack(const Kapok__Request *r, uint8_t *out)
{
    kapok__request__pack(r, frame_begin(out, kapok__request__get_packed_size(r)));
}

void msg_reply_pack(const Kapok__Reply *r, uint8_t *out)
{
    kapok__reply__pack(r, frame_begin(out, kapok__reply__get_packed_size(r)));
}

/* Bytes of the header, or a negative errno. */
static int64_t check_frame(const uint8_t *bytes, size_t length, const char **ret_why)
{
    uint32_t prefix[2];
    if (length < PREFIX) {
        *ret_why = "the message ends within its first 8 bytes";
        return -EBADMSG;
    }
    memcpy(prefix, bytes, sizeof prefix);
    size_t header = le32toh(prefix[1]);
    if (le32toh(prefix[0]) != MSG_MAGIC)
        *ret_why = "the message does not begin with the magic of Kapok";
    else if (header > MSG_HEADER_MOST)
        *ret_why = "the message's header is above 1 MB";
    else if (frame_bytes(header) > length)
        *ret_why = "the message ends within its header";
    else
        return (int64_t)header;
    return -EBADMSG;
}

static void set_payload(struct msg *m, const uint8_t *bytes, size_t length, size_t header)
{
    m->payload = bytes + frame_bytes(header);
    m->payload_bytes = length - frame_bytes(header);
}

int msg_request_open(struct msg *m, const uint8_t *bytes, size_t length, const char **ret_why)
{
    int64_t header = check_frame(bytes, length, ret_why);
    if (header < 0)
        return (int)header;
    struct msg made = {.request = kapok__request__unpack(NULL, (size_t)header, bytes + PREFIX)};
    if (!made.request) {
        *ret_why = "the message's header is no request";
        return -EBADMSG;
    }
    set_payload(&made, bytes, length, (size_t)header);
    *m = made;
    return 0;
}

int msg_reply_open(struct msg *m, const uint8_t *bytes, size_t length, const char **ret_why)
{
    int64_t header = check_frame(bytes, length, ret_why);
    if (header < 0)
        return (int)header;
    struct msg made = {.reply = kapok__reply__unpack(NULL, (size_t)header, bytes + PREFIX)};
    if (!made.reply) {
        *ret_why = "the message's header is no reply";
        return -EBADMSG;
    }
    set_payload(&made, bytes, length, (size_t)header);
    *m = made;
    return 0;
}

void msg_close(struct msg *m)
{
    if (m->request)
        kapok__request__free_unpacked(m->request, NULL);
    if (m->reply)
        kapok__reply__free_unpacked(m->reply, NULL);
    *m = (struct msg){0};
}
