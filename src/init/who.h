/* who - which program has a socket open?
 *
 * Asked about sockets by their inode, and answered with what the kernel says of who holds
 * them. Done by a worker, so that what it costs counts against the sandbox; what it looks through is the
 * sandbox's to fill, so the search is bounded, the youngest processes first. A process is looked at
 * with its own user's rights: it takes no capability that we have not. */
#pragma once
#include <stddef.h>

#define WHO_MAX 16 /* sockets in one question */

void who_run(int fd, char *payload, size_t n); /* answers on fd */
