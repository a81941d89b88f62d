/* steer - all that a network namespace sends out, led to two sockets.
 *
 * Every address is made local, so packets come back on loopback; a BPF program then gives what is not
 * for loopback's own addresses to our sockets. There is no interface through which anything could
 * leave otherwise. Whoever holds the three descriptors is the way out: when they are closed,
 * connections are refused. Where a client wanted to go is what the accepted socket says
 * of itself (getsockname), and a datagram of its destination (IP_ORIGDSTADDR). */
#pragma once
#include "base/err.h"

enum steer_fd { STEER_TCP, STEER_UDP, STEER_LINK, STEER_FDS };

#define STEER_RESOLVER "192.0.2.53" /* what a resolver's configuration inside may say; any does */
#define STEER_ALL_UDP 1u            /* all datagrams, not those for port 53 alone */

/* A listening TCP socket and a UDP one, both IPv6 ones that take IPv4 too where there is IPv6, non-blocking, in
 * the namespace of this process. The caller closes them. Single-threaded callers only. */
int steer_make(int pidfd, unsigned flags, int ret_fds[STEER_FDS], struct err *err);
