/* access - which registries, and which addresses, a caller may make the daemon connect to.
 *
 * A pull is a request that the daemon makes at somebody else's word, from where it stands: beside
 * services that trust the machine. So an address is looked at when a socket to it is about to be
 * opened, after names were resolved and redirects taken. Pure functions. */
#pragma once
#include <stdbool.h>
#include <sys/socket.h>

#include "base/err.h"
#include "net/address.h"

struct access {
    bool trusted;      /* the operator: private and loopback addresses, and any host, are fine */
    const char *allow; /* keeps; hosts, comma- or space-separated, that all others may use, at
                        * whatever address; NULL or empty: every public one */
};

/* May this caller name the registry? `host` as in a reference. Failure is `forbidden`. */
int access_host(const struct access *access, const char *host, struct err *err);
/* May a socket to addr be opened for `host`? */
bool access_address(const struct access *access, const char *host, const struct sockaddr *addr);
