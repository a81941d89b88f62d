/* rtnl - loopback's addresses and routes in the calling thread's network namespace, by netlink.
 *
 * Four fixed messages in one datagram. Written out rather than built with a library: nothing is parsed but
 * the kernel's yes or no, and the keeper, from which every cell is cloned, stays small. */
#pragma once
#include "base/err.h"

#define RTNL_HERE_V4 "192.0.2.2" /* a sandbox's own address: documentation's, so nobody's */
#define RTNL_HERE_V6 "fd77:6172:7265:6e::2"

/* Make every address local, so that a packet to any of them comes back on loopback; and give
 * loopback an address that is not 127.0.0.1, by which programs tell that there is a network. IPv6 is
 * left out where there is none. Done twice is fine. */
int rtnl_all_local(struct err *err);
