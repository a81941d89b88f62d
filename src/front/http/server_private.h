/* server_private - shared by the server's files. server.c: the sockets and the server's life;
 * server_request.c: a request from its first line to its end; server_admit.c: whether a request
 * may come in. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "front/http/auth.h"
#include "front/http/connections.h"
#include "front/http/limiter.h"
#include "front/http/metrics.h"
#include "front/http/request.h"
#include "front/http/server.h"
#include "front/http/workers.h"

struct conn;

#define IDLE_TIMEOUT_MS 60000 /* between two bytes of a request or of its answer */

struct endpoint {
    struct server *server;
    struct connections *connections;
    struct workers *workers;
    struct acceptor *acceptor; /* NULL: closed; guarded by the server's lock */
    struct conn *working;      /* likewise */
    bool admin;
};

struct server {
    struct server_config config;
    struct endpoint endpoints[2];
    pthread_mutex_t lock; /* guards the endpoints, and stop */
    bool stop;            /* no connection is used again */
    struct metrics metrics;
    struct auth *auth;
    struct limiter *limiter; /* NULL: no limit */
    char boot[7];            /* request ids: which life of the daemon, and a count */
    _Atomic uint64_t count;
    _Atomic int at_work; /* requests in a handler, streams not counted */
};

/* Serve one request of a connection. True: the connection may be used again. */
bool server_exchange(struct endpoint *ep, struct conn *c);

/* With the head read: find the route, the team and the limits of a request; open what takes its
 * body. */
int server_admit(struct endpoint *ep, struct request *req, const char *method, struct err *err);
int server_too_large(struct request *req, struct err *err); /* its body; always fails */
uint64_t server_announced_length(const struct request *req);
