/*
 * Ports for the processes of a pipeline.
 *
 * They lie below the kernel's range for outgoing connections. Inside it a peer that dials a
 * port nobody listens on may be given that very port as its own and connect to itself, and the
 * process that comes back finds its address in use.
 */
#ifndef CLIENT_PORT_H
#define CLIENT_PORT_H

#include <stdint.h>

#define PORT_LOWEST 10000

/* One that nobody listens on at 127.0.0.1 just now; 0 when none was found. */
uint16_t port_choose(void);

#endif
