/* port - the ports that a sandbox's programs listen on, reached from outside.
 *
 * A connection is made by a socket of the sandbox's own network namespace, so that a server bound to
 * 127.0.0.1 in there is reached, and nothing else ever is. What comes back is the
 * sandbox's word. */
#pragma once
#include "core/core.h"
#include "core/sandbox.h"

#define PORT_MAX 65535

/* A connected, non-blocking socket; the caller closes it. It is IPv4's loopback that is tried, then
 * IPv6's. Blocks for timeout_ms at most. -ECONNREFUSED, port_closed: nothing listens there. The sandbox
 * was entered by the caller (sandbox_enter). */
int port_dial(struct core *core, const struct sandbox *s, unsigned port, int timeout_ms,
              int *ret_fd, struct err *err);
