/* Ports: see the header. */
#include "client/port.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define RANGE_FILE "/proc/sys/net/ipv4/ip_local_port_range"
#define RANGE_FROM 32768 /* the kernel's own default */
#define ATTEMPTS   1000

/* Where outgoing connections' ports begin. */
static unsigned outgoing_from(void)
{
    unsigned from = RANGE_FROM;
    FILE *f = fopen(RANGE_FILE, "r");
    if (!f)
        return from;
    if (fscanf(f, "%u", &from) != 1 || from <= PORT_LOWEST + 100 || from > 65535)
        from = RANGE_FROM;
    fclose(f);
    return from;
}

static bool is_free(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool bound = !bind(fd, (struct sockaddr *)&at, sizeof at);
    close(fd);
    return bound;
}

uint16_t port_choose(void)
{
    unsigned span = outgoing_from() - PORT_LOWEST;
    for (int i = 0; i < ATTEMPTS; i++) {
        uint32_t random;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            return 0;
        uint16_t port = (uint16_t)(PORT_LOWEST + random % span);
        if (is_free(port))
            return port;
    }
    return 0;
}
