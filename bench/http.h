/* http - one keep-alive connection to a daemon, as thin as a client can be.
 *
 * A request is one send; an answer is read whole (by Content-Length or chunks), so what is timed
 * is the server and the loopback, not this file. For streams, the moment at which a given text
 * first appeared among the received bytes is noted. Blocks, with a limit on every wait. */
#pragma once
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct http {
    int fd;
    unsigned port;
    const char *key; /* borrowed for as long as the struct is used */
    struct buf in;
};

struct http_answer {
    int status;
    const char *body; /* in the connection's buffer: until the next request; NUL-terminated */
    size_t len;
    double mark_us; /* when `mark` was first seen; 0 if never */
};

int http_open(struct http *h, unsigned port, const char *key, struct err *err);
void http_close(struct http *h); /* also one that never opened, if zeroed with fd -1 */

/* A request as a client of any dialect writes it: with its own headers, and any bytes for a body. */
struct http_request {
    const char *method, *path;
    const char *headers; /* whole lines, each with its CRLF */
    const void *body;
    size_t len;
    const char *mark; /* may be NULL */
};
int http_send(struct http *h, const struct http_request *q, struct http_answer *ret_answer,
              struct err *err);

/* `body` and `mark` may be NULL; with a mark the answer is asked for as a stream of lines. */
int http_ask(struct http *h, const char *method, const char *path, const char *body,
             const char *mark, struct http_answer *ret_answer, struct err *err);
