/* steer - all that a network namespace sends out, led to three sockets.
 *
 * Every address is made local, so packets come back on loopback; a BPF program then gives what is not
 * for the namespace's own addresses to our sockets. There is no interface through which anything could
 * leave otherwise. Whoever holds the descriptors is the way out: when they are closed,
 * connections are refused. Where a client wanted to go is what the accepted socket says
 * of itself (getsockname), and a datagram of its destination (IP_ORIGDSTADDR). Whose a client is can be
 * asked through DIAG, a netlink socket (NETLINK_SOCK_DIAG); no kernel needs to have it. */
#pragma once
#include "base/err.h"

/* RAW_V4 and RAW_V6 send whole packets: what comes back must seem to come from where it was asked for. They
 * read echo requests, which the namespace no longer answers itself: every address is its own. */
enum steer_fd {
    STEER_TCP,
    STEER_UDP,  /* datagrams for port 53 */
    STEER_REST, /* other datagrams */
    STEER_LINK,
    STEER_DIAG,
    STEER_RAW_V4,
    STEER_RAW_V6, /* where there is no IPv6 one of IPv4, which nothing is sent to */
    STEER_FDS
};

#define STEER_RESOLVER "192.0.2.53" /* what a resolver's configuration inside may say; any does */

/* A listening TCP socket and two UDP ones, all IPv6 ones that take IPv4 too where there is IPv6, non-blocking, in
 * the namespace of this process. The caller closes them. Single-threaded callers only. */
int steer_make(int pidfd, int ret_fds[STEER_FDS], struct err *err);
