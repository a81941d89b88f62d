/* acceptor - takes connections, looks at their first request without reading it, and hands them on.
 *
 * One thread with an event loop waits for each new connection's head, so that a connection costs the
 * server nothing (no thread, no memory) until somebody has asked for something, and a head that
 * trickles in is cut. What a look at the head says belongs elsewhere is diverted, with every byte
 * still in the socket; the rest is served. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/err.h"

struct acceptor;

struct acceptor_config {
    int fd; /* listening; taken */
    void *arg;
    void (*serve)(void *arg, int fd, const struct sockaddr *peer, socklen_t n); /* takes fd */
    /* True: it took fd. `head` is the beginning of what the client sent, as far as it was looked at. */
    bool (*divert)(void *arg, int fd, const char *head, size_t n); /* NULL: never */
};

int acceptor_new(const struct acceptor_config *config, struct acceptor **ret_a, struct err *err);
/* No more connections; those that wait for a head are closed. */
void acceptor_free(struct acceptor *a);
DEFINE_FREEP(struct acceptor *, acceptor_free)
