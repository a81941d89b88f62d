/* port - the ports that a sandbox's programs listen on, reached from outside.
 *
 * A connection is made by a socket of the sandbox's own network namespace, so that a server bound to
 * 127.0.0.1 in there is reached, and nothing else ever is. What comes back is the
 * sandbox's word. */
#pragma once
#include "core/core.h"
#include "core/sandbox.h"

#define PORT_MAX 65535

#define PORT_TOKEN "preview" /* the purpose of the token of a private sandbox's ports (token.h) */
#define PORT_HOST_NOTE \
    "preview.host" /* a note of a sandbox: what servers inside are told as Host */

#define PORT_LIST_MAX 256
#define PORT_PROGRAM_SIZE 128

/* Something in a sandbox listens there. All of it is the sandbox's word. */
struct port {
    unsigned port;
    char address[48];                /* that it is bound to */
    char program[PORT_PROGRAM_SIZE]; /* the file that runs; "": not found */
};

/* What listens now, by port and address; free(*ret_ports). The sandbox was entered by the caller. */
int port_list(struct core *core, const struct sandbox *s, struct port **ret_ports, size_t *ret_n,
              struct err *err);

/* Somebody looked: what opened or closed since the last look becomes an event (portwatch.h). */
void port_seen(struct core *core, const char *id, const struct port *ports, size_t n);

#define PORT_STEER \
    4 /* the way out of a sandbox listens there (kernel/steer.c), no program of its */

/* A connected, non-blocking socket; the caller closes it. It is IPv4's loopback that is tried, then
 * IPv6's. Blocks for timeout_ms at most. -ECONNREFUSED, port_closed: nothing listens there. The sandbox
 * was entered by the caller (sandbox_enter). */
int port_dial(struct core *core, const struct sandbox *s, unsigned port, int timeout_ms,
              int *ret_fd, struct err *err);

/* Hands a client's WebSocket and a socket of port_dial's to the broker, which passes bytes between
 * them from now on and closes lease_fd when that is over. Takes all three, also on failure. */
int port_forward(struct core *core, const char *sandbox, int client_fd, int inside_fd, int lease_fd,
                 struct err *err);
