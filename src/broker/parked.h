/* parked - connections to servers inside that wait for their next request, and what warrend said of the
 * places they lead to.
 *
 * A verdict counts for a second, then warrend is asked again; a connection waits for a few. Both are
 * bounded in number: at one place, of one sandbox, which may listen on every port, and in all. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/id.h"
#include "base/loop.h"
#include "broker/crowd.h"
#include "broker/sock.h"
#include "wire/broker.h"

#define PARKED_BUCKETS 1024

struct place;
struct known;

/* A connection to a server: of a sandbox, or of warrend itself. */
struct upstream {
    struct sock sock;
    struct buf in, out;
    size_t seen; /* of `in`: there was no end of a head */
    bool reused; /* it has answered before, so that its end may be no answer to this request */
    bool keep;   /* its server will take another request */
    bool shaken; /* under TLS: its certificate was good */
    void *owner;
    struct later later;
    /* while it waits */
    struct place *place;
    unsigned ticket;
    struct upstream *next, **at;
    struct deadline deadline;
};

/* Takes fd, also on failure. */
struct upstream *upstream_new(struct loop *loop, int fd);
void upstream_close(struct upstream *u); /* NULL is fine; freed after the round */

struct parked {
    struct loop *loop;
    struct place *buckets[PARKED_BUCKETS];
    unsigned nplaces;
    struct crowd crowd;     /* connections that wait */
    struct known *unplaced; /* the last verdict for which there was no place */
};

struct parked_verdict {
    struct broker_proof proof; /* with which it was given */
    char host[BROKER_HOST_SIZE];
    char *data; /* NULL: none */
};

void parked_init(struct parked *all, struct loop *loop, unsigned most); /* connections */
void parked_done(struct parked *all);
/* Warrend said yes to who brought this. The result is good until the next call. */
const struct parked_verdict *parked_learn(struct parked *all, const char *sandbox, unsigned port,
                                          const struct broker_proof *proof,
                                          const struct broker_answer *answer);
void parked_forget(struct parked *all, const char *sandbox, unsigned port);
/* A waiting connection to there for someone with this proof, or NULL: ask. The caller's then; the
 * verdict is good until the next call. */
struct upstream *parked_take(struct parked *all, const char *sandbox, unsigned port,
                             const struct broker_proof *proof,
                             const struct parked_verdict **ret_verdict);
/* Takes u. */
void parked_put(struct parked *all, const char *sandbox, unsigned port, struct upstream *u);
