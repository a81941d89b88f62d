/* veil - TLS over a connection, for who goes on speaking in plain: to one end of a pair of sockets.
 *
 * It moves bytes between the other end and the TLS until either is over, by itself. If TLS cannot be begun,
 * or is cut off, the pair ends: for whom it is, that is the end of the connection. */
#pragma once
#include "base/loop.h"

struct trust;
struct veil;

struct veils {
    struct veil *first;
};

/* Takes fd, also on failure, which is below zero. host or address: whose certificate it must be. */
int veil_begin(struct veils *veils, struct loop *loop, struct trust *trust, const char *host,
               const char *address, int fd, int *ret_fd);
void veils_close(struct veils *veils);
