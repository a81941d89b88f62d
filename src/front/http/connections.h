/* connections - limits the number of connections: of all, of one address, with one key, without
 * any.
 *
 * A connection has a seat from its first moment to its last, whether it waits for a request,
 * works on one, or has become another protocol. When no seat is left, of all or of an address, the
 * longest waiting connection without a key gives its seat up: strangers may fill the room and
 * still keep out nobody with a key. Work for callers without a key, and for each key, is bounded
 * on its own; upgraded connections leave half of all seats, and a quarter of a key's and of an
 * address's, to requests. Knows no socket; every call is a few lines under a lock. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/err.h"

struct connections;

/* Each is at least 1. */
struct connections_limits {
    unsigned total;
    unsigned per_address; /* of one IPv4 address or one IPv6 /64; a unix socket has none */
    unsigned per_key;
    unsigned strangers; /* working at once without a key */
};

struct connections_counts {
    unsigned total;
    unsigned waiting;     /* for a request */
    unsigned without_key; /* no request came, or the last one had no key */
    unsigned upgraded;
};

struct seat;
/* Ends the work of another caller's connection. Called under the lock, so the seat stays taken. */
typedef void (*connections_cut_fn)(struct seat *s);

/* Part of a connection; zeroed before connections_enter, and used through these calls alone. */
struct seat {
    struct connections_address *address; /* NULL: a unix socket */
    struct connections_key *key;         /* NULL: no key */
    bool taken, waits, works, upgraded;
    int64_t since_ms; /* when it began to work without a key */
    TAILQ_ENTRY(seat)
    all, same; /* without a key: those that wait or work; those of an address that wait */
};

int connections_new(const struct connections_limits *limits, connections_cut_fn cut,
                    struct connections **ret_c, struct err *err);
void connections_free(struct connections *c);
DEFINE_FREEP(struct connections *, connections_free)

/* Take a seat. -EAGAIN: none is free, and no waiting stranger can give one up. Otherwise
 * *ret_victim is the seat to clear (the caller closes that connection and calls
 * connections_leave for it), or NULL. */
int connections_enter(struct connections *c, struct seat *s, const struct sockaddr *peer,
                      struct seat **ret_victim);
/* The connection waits for a request until connections_wake: without a key it may lose its seat. */
void connections_wait(struct connections *c, struct seat *s);
void connections_wake(struct connections *c, struct seat *s);
/* The connection works on a request of `who` (connections_who; 0: not known yet) until
 * connections_rest. -EAGAIN: too many work, and no stranger has worked long enough to be cut.
 * May be called again when the caller becomes known. */
int connections_work(struct connections *c, struct seat *s, uint64_t who);
void connections_rest(struct connections *c, struct seat *s);
/* The connection becomes another protocol: it keeps its seat, and its key, until it leaves.
 * -EAGAIN: such connections have half of the seats, and three quarters of a key's and an address's:
 * whoever forwards ports can still call the API. */
int connections_upgrade(struct connections *c, struct seat *s);
void connections_leave(struct connections *c, struct seat *s);
/* Adds to *counts. */
void connections_count(struct connections *c, struct connections_counts *counts);

bool connections_known(const struct seat *s); /* the last request came with a key */
uint64_t connections_who(const struct connections *c, const char *text);
