/* relay - one HTTP request passed on to a server behind a socket, and its answer passed back.
 *
 * The body goes there while it comes, the answer comes back while it is made; neither is kept
 * whole. Headers that belong to one connection stay on it. The server is not trusted: what it
 * answers is parsed by libcurl, bounded, and can only become an answer. Blocks the request's own thread;
 * a client that goes away ends it, which the server sees as the end of its connection. */
#pragma once
#include "front/http/request.h"

struct relay;

struct relay_spec {
    int fd;                          /* connected; taken, also on failure */
    const char *host;                /* the Host that the server sees */
    const char *target;              /* path and query, as they go on the request line */
    const char *const *drop;         /* headers of the request that stay here; NULL-terminated */
    bool (*drops)(const char *name); /* others that do; NULL: none */
    const char *const *add; /* "Name: value" lines that it gets; NULL-terminated, or NULL */
};

/* Copies what it needs; keeps req. relay_free. */
int relay_new(struct request *req, const struct relay_spec *spec, struct relay **ret_relay,
              struct err *err);
/* A piece of the request's body. -ECANCELED: the client is gone. What a server does not want to read
 * any more is dropped. */
int relay_write(struct relay *relay, const char *p, size_t n, struct err *err);
/* The end of the body: waits for the head of the answer and replies with it. Takes the relay when
 * it returns 0. -ECONNRESET: there was no answer, or none that is HTTP. */
int relay_reply(struct relay *relay, struct err *err);
void relay_free(struct relay *relay);
