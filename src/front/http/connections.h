/* connections - how many connections there are: of one address, with one key, without any.
 *
 * A connection has a seat from its first moment to its last, whether it waits for a request or
 * works on one. When there is no seat left, of all or of an address, the connection without a
 * key that has waited for longest gives its own up: strangers may fill the room and still keep
 * nobody with a key out. Work for callers without a key, and for each key, is bounded on its
 * own. Knows no socket; every call is a few lines under a lock. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/err.h"

struct connections;

/* Each at least 1. */
struct connections_limits {
    unsigned total;
    unsigned per_address; /* of one IPv4 address or one IPv6 /64; a unix socket has none */
    unsigned per_key;
    unsigned strangers; /* at work at once without a key */
};

struct seat;
/* Ends the work of a connection that is not the caller's: called under the lock, so the seat is
 * taken. */
typedef void (*connections_cut_fn)(struct seat *s);

/* A connection's own; zeroed before connections_enter, and only read through these calls. */
struct seat {
    struct connections_address *address; /* NULL: has none */
    struct connections_key *key;         /* NULL: without one */
    bool taken, waits, works;
    int64_t since_ms; /* it works without a key */
    TAILQ_ENTRY(seat)
    all, same; /* without a key: those that wait or work; those of an address that wait */
};

int connections_new(const struct connections_limits *limits, connections_cut_fn cut,
                    struct connections **ret_c, struct err *err);
void connections_free(struct connections *c);
DEFINE_FREEP(struct connections *, connections_free)

/* Take a seat. -EAGAIN: there is none, and none that waits could be had. Otherwise *ret_victim
 * is the seat to clear for it (the caller closes that connection and calls connections_leave for
 * it) or NULL. */
int connections_enter(struct connections *c, struct seat *s, const struct sockaddr *peer,
                      struct seat **ret_victim);
/* It waits for a request: whoever has no key may lose the seat. Until connections_wake. */
void connections_wait(struct connections *c, struct seat *s);
void connections_wake(struct connections *c, struct seat *s);
/* Its request is worked on; who: the caller (connections_who), 0 while that is nobody we know.
 * -EAGAIN: too many are, and none of those without a key has been for long enough to be cut. May
 * be called again when the caller becomes known. Until connections_rest. */
int connections_work(struct connections *c, struct seat *s, uint64_t who);
void connections_rest(struct connections *c, struct seat *s);
void connections_leave(struct connections *c, struct seat *s);

bool connections_known(const struct seat *s); /* its last request came with a key */
uint64_t connections_who(const struct connections *c, const char *text);
