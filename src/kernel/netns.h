/* netns - sockets in another process's network namespace.
 *
 * A socket belongs to the namespace it was made in for good, whoever holds it then: making one there
 * is all that it takes to reach a port that listens on that namespace's loopback. */
#pragma once
#include "base/err.h"

enum netns_family { NETNS_V4, NETNS_V6, NETNS_FAMILIES };

/* Call fn in the namespace of this process, and come back. Single-threaded callers only: the thread
 * goes there. One that could not come back would be a thread in a hostile place: it aborts. */
int netns_visit(int pidfd, int (*fn)(void *arg, struct err *err), void *arg, struct err *err);

/* Unconnected TCP sockets, non-blocking, in the namespace of this process; -1 for a family it does
 * not have. The caller closes them. */
int netns_sockets(int pidfd, int ret_fds[NETNS_FAMILIES], struct err *err);
