/*
 * Which addresses a process may listen on or dial. Only loopback: anybody on the way of plain
 * tcp could read the secret.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/link.h"

#define SCHEME "tcp://"

static bool is_loopback(const char *host)
{
    struct in_addr four;
    struct in6_addr six;
    if (!strcmp(host, "localhost"))
        return true;
    if (inet_pton(AF_INET, host, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

static bool is_port(const char *text)
{
    char *end;
    unsigned long port = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && port <= 65535;
}

/* "host" of "host:port" or "[host]:port"; false when the text is neither. */
static bool split(const char *text, char *host, size_t size)
{
    const char *colon = strrchr(text, ':');
    if (!colon || !is_port(colon + 1))
        return false;
    const char *start = text, *end = colon;
    if (*start == '[' && end > start && end[-1] == ']') {
        start++;
        end--;
    }
    if (end <= start || (size_t)(end - start) >= size)
        return false;
    memcpy(host, start, (size_t)(end - start));
    host[end - start] = 0;
    return true;
}

int link_address_check(const char *address, struct problems *p)
{
    char host[256];
    size_t scheme = strlen(SCHEME);
    if (strncmp(address, SCHEME, scheme) || !split(address + scheme, host, sizeof host))
        problems_add(p, "address %.200s: expected tcp://HOST:PORT", address);
    else if (!is_loopback(host))
        problems_add(
            p, "address %.200s: plain tcp is for loopback only (127.0.0.1), found host %s",
            address, host);
    else
        return 0;
    return -EINVAL;
}
