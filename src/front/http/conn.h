/* conn - one connection of a client, whose requests are read strictly, one after another.
 *
 * net/head.h and net/body.h read heads and bodies, as they do for previews. Calls block until
 * their deadline. While a connection waits for a request, the acceptor has it, and it needs no
 * buffer and no thread. */
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

struct conn_room; /* the buffers of a connection at work */

struct conn {
    int fd; /* non-blocking; -1: given away */
    /* Not -1: the connection belongs to another process, which holds the other end until its end. */
    int lease_fd;
    struct sockaddr_storage peer;
    socklen_t peer_len;
    struct seat seat;
    struct conn_room *room;  /* NULL while it waits */
    struct conn *next, **at; /* in the list of waiting or of working connections */
    /* the acceptor's own */
    struct acceptor *acceptor;
    struct watch watch;
    struct deadline deadline;
    struct later later;
    size_t seen;
    bool spoken, served;
    bool lent; /* fd is the lease of a connection that another process has */
};

struct conn *conn_new(int fd, const struct sockaddr *peer,
                      socklen_t n); /* takes fd; NULL: no memory */
void conn_free(struct conn *c);     /* closes it */
/* The connection becomes another process's: that process gets both descriptors and must hold the
 * lease as long as the connection. Call conn_leave_behind once nothing uses c->fd any more. */
int conn_lend(struct conn *c, int *ret_fd, int *ret_lease_fd);
/* Close c->fd and wait on the lease in its place. False: the connection was not lent. */
bool conn_leave_behind(struct conn *c);

/* ---- a request ---- */

/* Reads the next head, dropping the rest of the request before. 1; 0: the client closed.
 * -EBADMSG: not to be trusted, -EMSGSIZE: too long, -ETIMEDOUT. The texts of conn_head end in a
 * NUL. */
int conn_read_head(struct conn *c, int64_t deadline_ms);
const struct head *conn_head(const struct conn *c);              /* NULL: none was read */
const char *conn_header(const struct conn *c, const char *name); /* the first; NULL: none */
/* The next bytes of the body, valid until the next call; 1: the body is complete. -EPIPE: the
 * client closed. */
int conn_read_body(struct conn *c, int64_t deadline_ms, const char **ret_p, size_t *ret_n);
/* How many bytes of the body are to come that nothing frames and none of which were read: they may be taken
 * from c->fd, and are then told here. 0: none, or the body comes in chunks. */
uint64_t conn_body_alone(const struct conn *c);
void conn_body_taken(struct conn *c, uint64_t n);
bool conn_body_begun(const struct conn *c); /* bytes of it are here, or it has none */
bool conn_has_more(const struct conn *c);   /* bytes behind the request were read */
void conn_drop_room(struct conn *c);        /* call before it waits */

/* ---- the answer ---- */

/* Writes all of iov, and changes it; stall_ms: how long the client may read nothing. */
int conn_write(struct conn *c, struct iovec *iov, size_t n, int stall_ms);
/* End our side and read on for a moment: closing over unread bytes sends a reset, and the client
 * might lose the answer. */
void conn_finish(struct conn *c, int max_ms);
/* Answer a connection that had no request yet with "no room", without waiting. */
void conn_turn_away(struct conn *c);
