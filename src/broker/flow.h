/* flow - the bytes of one body on their way from one socket to another.
 *
 * Bytes go through one buffer that all flows share and stay with a flow only while their
 * receiver is slow; then nothing more is read, so that memory is bounded and the sender feels it. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "broker/sock.h"
#include "net/body.h"

#define FLOW_PIECE (64 * 1024)

struct flow {
    struct body body;
    bool over;       /* all of it was read */
    bool ended;      /* because its sender ended, which is how BODY_UNTIL_END ends */
    uint64_t passed; /* bytes of it so far */
    size_t most;     /* to be moved in one run; 0: as much as is fair to others */
};

enum flow_state {
    FLOW_WAIT_FROM, /* for bytes to read */
    FLOW_WAIT_TO,   /* for room to write */
    FLOW_DONE,      /* read and written */
    FLOW_FROM_LOST, /* its sender ended before the body did */
    FLOW_TO_LOST,
    FLOW_BROKEN, /* the chunks make no sense */
};

/* Both ends: `early` has what was read from `from` before, and gets what was read beyond the end; `pending`
 * is what `to` did not take yet. */
struct flow_ends {
    struct sock *from;
    struct buf *early;
    struct sock *to;
    struct buf *pending;
};

/* What is done with bytes between the two. */
struct flow_ops {
    /* Passes on, or puts behind what is pending, those that belong to it, and counts them. -EBADMSG: they make
     * no sense; another failure: the receiver is lost. */
    int (*take)(void *arg, const struct flow_ends *ends, const char *p, size_t n, size_t *ret_used);
    /* The sender has ended: below zero if that is no end. */
    int (*end)(void *arg, const struct flow_ends *ends);
};

/* As far as it goes without waiting, until *over; `most`: as in struct flow. */
enum flow_state flow_pump(const struct flow_ends *ends, const struct flow_ops *ops, void *arg,
                          const bool *over, size_t most);

void flow_start(struct flow *f, enum body_kind kind, uint64_t length);
enum flow_state flow_run(struct flow *f, struct sock *from, struct buf *early, struct sock *to,
                         struct buf *pending);
/* Puts what is there early behind what is pending, so that a head and a small body are one write.
 * -EBADMSG as FLOW_BROKEN. */
int flow_gather(struct flow *f, struct buf *early, struct buf *pending);
/* Write what is pending: 1 all of it, 0 some is left, below zero: lost. */
int flow_flush(struct sock *to, struct buf *pending);
/* Read behind what is there: 1 something came, 0 wait (an empty buffer then takes no memory), -ECONNRESET: its
 * sender has ended or is lost, -ENOMEM, -EMSGSIZE. */
int flow_fill(struct sock *from, struct buf *in);
/* Read and throw away, as far as a client may make us: 0 wait, below zero: close. */
int flow_drain(struct sock *from, size_t *drained);

/* ---- what has come of a run ---- */
/* 1 done, 0 wait, -ECONNRESET: to be cut, so that the receiver sees that something is missing. */
int flow_result(enum flow_state s);
/* The same of a request's body: -EBADMSG if it makes no sense. A server that takes no more of it may still
 * answer: *lost, and 1. */
int flow_sent(enum flow_state s, struct buf *pending, bool *lost);
/* The same of one direction of a tunnel: at its end `to` is told, once; 0 then too. */
int flow_tunnelled(enum flow_state s, struct sock *to, bool *ended);
