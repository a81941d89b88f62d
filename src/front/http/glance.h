/* glance - which way a request goes, from a first look at its head.
 *
 * Loose on purpose: it only chooses who reads the connection, and both readers check for
 * themselves what they get. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct glance {
    /* It is for a port of a sandbox: its Host is below the domain of previews, or E2B's headers name a
     * port and it wants to become something else than HTTP. */
    bool preview;
    const char *host; /* in `head`; as the client sent it */
    size_t host_len;
};

/* `head` need not be whole. */
void glance(const char *head, size_t n, const char *domain, struct glance *ret_g);
