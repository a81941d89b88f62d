/* dial - a connection to the world that is being made, for a sandbox.
 *
 * Embedded in what it is for. Whoever dials has judged the address already, and gets a plain connected
 * socket, whichever way it was reached: directly, or by the proxies that the operator and the sandbox have
 * (both, one through the other). Does not know what will be said on it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "net/address.h"

struct network;
struct detour;

struct dial {
    struct network *net;
    struct watch watch;
    struct deadline deadline;
    int fd;                /* -1: none yet */
    struct detour *detour; /* NULL: straight */
    /* fd: connected, taken by it; below zero: -errno. NULL while nothing is dialled. */
    void (*fn)(struct dial *d, int fd);
};

/* name: what the client said that it wants there, or "". fn is called once, not before this returns; below
 * zero: not at all. Of what goes through a proxy -EHOSTDOWN says that it cannot be reached,
 * -EKEYREJECTED that it does not take our user and password, -EACCES that it refuses, -EPROTO that its
 * answers make no sense. */
int dial_begin(struct dial *d, struct network *n, const struct address *to, uint16_t port,
               const char *name, void (*fn)(struct dial *d, int fd));
void dial_cancel(struct dial *d); /* may not be dialling at all */
