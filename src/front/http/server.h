/* server - the listening sockets, and the way from a connection to a handler and back.
 *
 * Each request has a thread, so that a handler is straight-line code that may block; a waiting
 * connection has none (acceptor.h). Everything a peer controls is bounded here: connections
 * (connections.h), header bytes, body bytes, idle time. The routes decide the rest. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/err.h"
#include "core/core.h"
#include "front/http/connections.h"
#include "front/http/dialect.h"

struct server;

struct server_config {
    struct core *core;                     /* keeps */
    const struct dialect *const *dialects; /* keeps; at least one, then NULL */
    int tcp_fd, admin_fd;                  /* listening; taken. -1: none */
    struct connections_limits connections; /* of tcp_fd; the admin socket has its own */
    unsigned rate_limit, rate_burst; /* requests of one key: a second, and at once; 0: no limit */
    const char *cors_origins;        /* keeps; NULL: none (cors.h) */
    const _Atomic uint64_t *keeper_restarts; /* keeps; NULL: not counted */
    const char *listen, *tls_listen; /* keeps; ADDR:PORT, for those who ask; NULL: not there */
    const char *preview_domain;      /* keeps; as clients write it, with its port; NULL: none */
    bool preview_tls;                /* it is reached by TLS */
    /* Takes connections that are not for this server, by their first head (acceptor.h); or NULL. */
    bool (*divert)(void *arg, int fd, const char *head, size_t n);
    void *divert_arg;
};

int server_new(const struct server_config *config, struct server **ret_server, struct err *err);
/* A connection that somebody else accepted, from that address; taken. */
void server_take(struct server *server, int fd, const struct sockaddr *peer, socklen_t n);
/* The open connections, of all listeners. */
void server_connections(const struct server *server, struct connections_counts *ret_counts);
/* Stop accepting, let requests at work end for up to timeout_ms, then cut what is left. */
void server_stop(struct server *server, int timeout_ms);
void server_free(struct server *server);
DEFINE_FREEP(struct server *, server_free)
