/*
 * The frame of a message (see kapok.proto): building one, and opening one from outside.
 *
 * A message is bytes; who carries them is not known here. Opening refuses a wrong magic, a
 * header above MSG_HEADER_MOST, a frame that ends early and a header that does not decode; the
 * payload is used where it lies (at a multiple of 64 from the frame's start).
 */
#ifndef PROTO_MSG_H
#define PROTO_MSG_H

#include <stddef.h>
#include <stdint.h>

#include "proto/kapok.pb-c.h"

#define MSG_MAGIC       0x4b50414bu /* "KAPK" in the file */
#define MSG_VERSION     1
#define MSG_HEADER_MOST ((size_t)1 << 20)
#define MSG_ALIGN       64

/* Bytes before the payload: the frame of this header. */
size_t msg_request_frame(const Kapok__Request *r);
size_t msg_reply_frame(const Kapok__Reply *r);

/* Writes that many bytes. */
void msg_request_pack(const Kapok__Request *r, uint8_t *out);
void msg_reply_pack(const Kapok__Reply *r, uint8_t *out);

/* An opened message; `bytes` must outlive it. Exactly one of the headers is set. */
struct msg {
    Kapok__Request *request;
    Kapok__Reply *reply;
    const uint8_t *payload;
    size_t payload_bytes;
};

/* -EBADMSG with a sentence in *ret_why (static text). */
int msg_request_open(struct msg *m, const uint8_t *bytes, size_t length, const char **ret_why);
int msg_reply_open(struct msg *m, const uint8_t *bytes, size_t length, const char **ret_why);
void msg_close(struct msg *m); /* frees the headers; fine on a zeroed one */

#endif
