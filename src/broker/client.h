/* client - a connection from outside: its requests, one after the other, each passed to the server
 * that its Host names and answered with what that says.
 *
 * The life of it is one switch in client.c; exchange.c is one request and its answer. Between two
 * requests it holds no buffer. A client that is slow, silent or wrong costs a bounded time. */
#pragma once
#include <sys/socket.h>

#include "base/loop.h"
#include "broker/own_names.h"
#include "broker/ask.h"
#include "broker/crowd.h"
#include "broker/line.h"
#include "broker/link.h"
#include "broker/parked.h"

struct ssl_ctx_st;

/* What all clients share. */
struct preview {
    struct loop *loop;
    struct link *link;
    const char *domain;
    struct own_names own_names;
    struct asks asks;
    struct parked parked;
    struct crowd busy;   /* clients at a sandbox's port */
    struct line idle;    /* those that wait for a request: they make room when there is none */
    struct tally *tally; /* keeps; NULL: nobody counts */
    struct client *clients;
    unsigned nclients, most;
};

int preview_init(struct preview *p, struct loop *loop, struct link *link, const char *domain,
                 struct err *err);
void preview_done(struct preview *p); /* closes every connection */
/* A connection that was accepted; taken. ssl: NULL, or a handshake to be made on it; taken too. */
void preview_client(struct preview *p, int fd, struct ssl_st *ssl);
void preview_answer(struct preview *p, const struct broker_answer *answer, int fd);
