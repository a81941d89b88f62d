/* route_check - whether this machine has a way to an address, as its routes are now.
 *
 * A connection inside is taken before ours is made, so a client that was given an address of the wrong family finds
 * out too late to try the other. Who has IPv4 alone, or IPv6 alone, is therefore told of no other. The kernel is
 * asked, and nothing is sent. */
#pragma once
#include <stdbool.h>

#include "net/address.h"

/* False only where the other family leads somewhere: a machine without any way has none to prefer. */
bool route_check_worth(const struct address *to);
