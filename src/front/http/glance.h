/* glance - which way a request goes, from a first look at its head.
 *
 * Loose on purpose: it only chooses who reads the connection, and both readers check for
 * themselves what they get. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* It is for a port of a sandbox: its Host is a preview's, or E2B's headers name a port and it wants to
 * become something else than HTTP. `head` need not be whole. */
bool glance_is_preview(const char *head, size_t n, const char *domain);
