/* Messages and errors of nng in our terms. */
#include "proto/link_private.h"

#include <errno.h>
#include <string.h>

static size_t payload_bytes(const struct iovec *payload, size_t parts)
{
    size_t bytes = 0;
    for (size_t i = 0; i < parts; i++)
        bytes += payload[i].iov_len;
    return bytes;
}

static int message(nng_msg **ret_msg, size_t frame, const struct iovec *payload, size_t parts)
{
    if (nng_msg_alloc(ret_msg, frame + payload_bytes(payload, parts)))
        return -ENOMEM;
    uint8_t *at = (uint8_t *)nng_msg_body(*ret_msg) + frame;
    for (size_t i = 0; i < parts; i++) {
        memcpy(at, payload[i].iov_base, payload[i].iov_len);
        at += payload[i].iov_len;
    }
    return 0;
}

int link_private_request(nng_msg **ret_msg, const Kapok__Request *r,
                         const struct iovec *payload, size_t parts)
{
    int result = message(ret_msg, msg_request_frame(r), payload, parts);
    if (!result)
        msg_request_pack(r, nng_msg_body(*ret_msg));
    return result;
}

int link_private_reply(nng_msg **ret_msg, const Kapok__Reply *r, const struct iovec *payload,
                       size_t parts)
{
    int result = message(ret_msg, msg_reply_frame(r), payload, parts);
    if (!result)
        msg_reply_pack(r, nng_msg_body(*ret_msg));
    return result;
}

void link_private_align(struct msg *m)
{
    size_t off = (uintptr_t)m->payload % 8;
    if (!off || !m->payload_bytes)
        return;
    uint8_t *to = (uint8_t *)(uintptr_t)m->payload - off;
    memmove(to, m->payload, m->payload_bytes);
    m->payload = to;
}

int link_private_errno(int nng_error)
{
    switch (nng_error) {
    case 0:
        return 0;
    case NNG_ENOMEM:
        return -ENOMEM;
    case NNG_ETIMEDOUT:
        return -ETIMEDOUT;
    case NNG_ECANCELED:
    case NNG_ECLOSED:
        return -ECANCELED;
    case NNG_ECONNRESET:
    case NNG_ECONNSHUT:
    case NNG_ECONNABORTED:
        return -ECONNRESET;
    case NNG_EADDRINUSE:
        return -EADDRINUSE;
    case NNG_EADDRINVAL:
        return -EINVAL;
    case NNG_EPERM:
        return -EPERM;
    case NNG_EMSGSIZE:
        return -EMSGSIZE;
    default:
        return -EIO;
    }
}
