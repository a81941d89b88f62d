/* acceptor - takes connections, peeks at their next request, and hands them on.
 *
 * One thread with an event loop has every connection that waits, for its first request and for
 * each later one: a connection costs no thread and no buffer until a whole head is there, and a
 * head that trickles in is cut. A connection that finds no seat (connections.h) takes that of a
 * waiting stranger or is turned away. A connection whose first head belongs elsewhere is
 * diverted, with every byte still in the socket; the rest is served. A connection that was lent to
 * another process waits here for its end, so that it keeps its seat until then. */
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
    /* 0: took the connection; below zero: no thread is free, and the acceptor turns it away. */
    int (*serve)(void *arg, struct conn *c);
    /* True: took fd. `head` is the beginning of what the client sent, as far as it was peeked
     * at. */
    bool (*divert)(void *arg, int fd, const char *head, size_t n); /* NULL: never */
};

int acceptor_new(const struct acceptor_config *config, struct acceptor **ret_a, struct err *err);
/* Takes a connection that another listener accepted, or that was served and waits for its next
 * request, or for its end where it was lent. Any thread may call it. */
void acceptor_take(struct acceptor *a, struct conn *c);
/* Accepts no more, and closes the waiting connections. */
void acceptor_free(struct acceptor *a);
DEFINE_FREEP(struct acceptor *, acceptor_free)
