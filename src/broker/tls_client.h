/* tls_client - TLS over a connection, for who goes on speaking in plain: to one end of a pair of sockets.
 *
 * It moves bytes between the other end and the TLS until either is over, by itself. If TLS cannot be begun,
 * or is cut off, the pair ends: for whom it is, that is the end of the connection. */
#pragma once
#include "base/loop.h"

struct trust;
struct tls_client;

struct tls_clients {
    struct tls_client *first;
};

/* Takes fd, also on failure, which is below zero. host or address: whose certificate it must be. */
int tls_client_begin(struct tls_clients *tls_clients, struct loop *loop, struct trust *trust,
                     const char *host, const char *address, int fd, int *ret_fd);
void tls_clients_close(struct tls_clients *tls_clients);
