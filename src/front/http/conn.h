/* conn - one connection of a client: its requests are read strictly, one after another.
 *
 * The heads and the frames of bodies are read by net/head.h and net/body.h, as those of previews
 * are. Calls block until their deadline. While a connection waits for a request it has no buffer
 * and no thread: the acceptor has it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/loop.h"
#include "front/http/connections.h"
#include "net/head.h"

#define CONN_IN_BYTES (128 * 1024) /* a head; or one piece of an upload */

struct conn_room; /* what it needs while it works */

struct conn {
    int fd; /* non-blocking; -1: given away */
    struct sockaddr_storage peer;
    socklen_t peer_len;
    struct seat seat;
    struct conn_room *room;  /* NULL while it waits */
    struct conn *next, **at; /* among those that wait, or among those at work */
    /* the acceptor's own */
    struct acceptor *acceptor;
    struct watch watch;
    struct deadline deadline;
    struct later later;
    size_t seen;
    bool spoken, served;
};

struct conn *conn_new(int fd, const struct sockaddr *peer,
                      socklen_t n); /* takes fd; NULL: no memory */
void conn_free(struct conn *c);     /* closes it */

/* ---- a request ---- */

/* The next head, without whatever came before. 1; 0: the client ended. -EBADMSG: it cannot be
 * trusted, -EMSGSIZE: too long, -ETIMEDOUT. The texts of conn_head end in a NUL. */
int conn_read_head(struct conn *c, int64_t deadline_ms);
const struct head *conn_head(const struct conn *c);              /* NULL: none was read */
const char *conn_header(const struct conn *c, const char *name); /* the first; NULL: none */
/* The next bytes of its body, until the call after; 1: that was all. -EPIPE: the client ended. */
int conn_read_body(struct conn *c, int64_t deadline_ms, const char **ret_p, size_t *ret_n);
bool conn_body_begun(const struct conn *c); /* something of it is there already, or it has none */
bool conn_has_more(const struct conn *c);   /* bytes behind the request were read, too */
void conn_drop_room(struct conn *c);        /* before it waits */

/* ---- the answer ---- */

/* All of it; stall_ms: how long the client may take none of it. Changes iov. */
int conn_write(struct conn *c, struct iovec *iov, size_t n, int stall_ms);
/* Say that there is no more to come and read on for a moment: closing over unread bytes sends a
 * reset, which would take the answer away from the client again. */
void conn_finish(struct conn *c, int max_ms);
/* The same for one that never had a request: an answer that there is no room, without waiting. */
void conn_turn_away(struct conn *c);
