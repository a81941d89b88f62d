/* server_private - what the files of the server share. server.c: the sockets, and a request from its
 * first line to its end; server_admit.c: whether it may come in. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "front/http/auth.h"
#include "front/http/limiter.h"
#include "front/http/metrics.h"
#include "front/http/request.h"
#include "front/http/server.h"

struct MHD_Daemon;

struct endpoint {
    struct server *server;
    struct MHD_Daemon *daemon;
    _Atomic unsigned open; /* connections that it has */
    bool admin;
};

struct server {
    struct server_config config;
    struct endpoint endpoints[2];
    struct acceptor *acceptor; /* NULL: no TCP */
    pthread_mutex_t taking;    /* a daemon that connections are given to does not end meanwhile */
    struct metrics metrics;
    struct auth *auth;
    struct limiter *limiter; /* NULL: no limit */
    char boot[7];            /* request ids: which life of the daemon, and a count */
    _Atomic uint64_t count;
    _Atomic int working; /* requests in a handler, streams not counted */
};

/* The head is there: finds the route, the team and the limits of a request; opens what takes its body. */
int server_admit(struct endpoint *ep, struct request *req, const char *method, struct err *err);
int server_too_large(struct request *req, struct err *err); /* its body; always fails */
uint64_t server_announced_length(const struct request *req);
