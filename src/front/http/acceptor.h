/* acceptor - takes connections, looks at their next request without reading it, and hands them on.
 *
 * One thread with an event loop has every connection that waits, for its first request and for
 * each one after: it costs the server no thread and no buffer until a whole head is there, and a
 * head that trickles in is cut. Connections for which there is no seat (connections.h) are
 * turned away, or others that wait for them. What a look at the first head says belongs
 * elsewhere is diverted, with every byte still in the socket; the rest is served. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "front/http/conn.h"

struct acceptor;

struct acceptor_config {
    int fd;                          /* listening; taken */
    struct connections *connections; /* keeps */
    void *arg;
    /* Takes the connection when it is 0; below zero: nobody is free, and it is turned away. */
    int (*serve)(void *arg, struct conn *c);
    /* True: it took fd. `head` is the beginning of what the client sent, as far as it was looked
     * at. */
    bool (*divert)(void *arg, int fd, const char *head, size_t n); /* NULL: never */
};

int acceptor_new(const struct acceptor_config *config, struct acceptor **ret_a, struct err *err);
/* A connection that somebody else accepted, or that was served and waits for its next request;
 * taken. Any thread may call it. */
void acceptor_take(struct acceptor *a, struct conn *c);
/* No more connections; those that wait are closed. */
void acceptor_free(struct acceptor *a);
DEFINE_FREEP(struct acceptor *, acceptor_free)
