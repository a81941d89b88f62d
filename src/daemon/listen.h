/* listen - the daemon's two listening sockets, bound while it still has its rights. */
#pragma once
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define LISTEN_TEXT_MAX 80 /* "[" an IPv6 address "]:65535" */

/* "ADDR:PORT" or "[ADDR]:PORT"; fills `where` with what it was bound to (port 0 is resolved).
 * Returns the socket. */
/* `option`: which one said so, for the message of a failure. */
int listen_tcp(const char *option, const char *address, char where[LISTEN_TEXT_MAX],
               struct err *err);
/* A unix socket at path, 0660, of that user and group; one left from before is replaced. */
int listen_unix(const char *path, uid_t uid, gid_t gid, struct err *err);
