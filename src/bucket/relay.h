/* relay - the one way out of s3fs's network namespace: to its bucket's host, and nowhere else.
 *
 * Speaks SOCKS5 with names, so that each connection's host is looked up and judged here: an endpoint is
 * somebody's choice, and its name may lead into the host's own networks at any time. A thread a
 * connection; bytes only pass. */
#pragma once
#include "wire/bucket.h"

#define RELAY_PORT 1080 /* on the namespace's loopback */

/* Serves `listen_fd` until the process ends, in threads of its own. Keeps c. 0 or -errno. */
int relay_start(int listen_fd, const struct bucket_config *c);

/* Is that whom the configuration names? */
bool relay_may_ask(const struct bucket_config *c, const char *host, uint16_t port);
