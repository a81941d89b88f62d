/* sklookup - a BPF program that gives a network namespace's connections to sockets of our choice.
 *
 * Whatever is not for the namespace's own loopback goes to one TCP socket; datagrams for port 53 to one
 * UDP socket, others to another. It works as long as somebody holds the link. Without it a connection
 * finds nobody and is refused: nothing leaves by accident. Some 15 instructions, loaded for each
 * namespace, since the sockets are part of it. */
#pragma once
#include <stdbool.h>

#include "base/err.h"

/* In the calling thread's network namespace, to which the sockets belong too. The caller owns the
 * link; the sockets may be closed, and then get nothing. */
int sklookup_attach(int tcp_fd, int udp_fd, int rest_fd, int *ret_link, struct err *err);
