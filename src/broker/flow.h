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
    bool over;  /* all of it was read */
    bool ended; /* because its sender ended, which is how BODY_UNTIL_END ends */
};

enum flow_state {
    FLOW_WAIT_FROM, /* for bytes to read */
    FLOW_WAIT_TO,   /* for room to write */
    FLOW_DONE,      /* read and written */
    FLOW_FROM_LOST, /* its sender ended before the body did */
    FLOW_TO_LOST,
    FLOW_BROKEN, /* the chunks make no sense */
};

void flow_start(struct flow *f, enum body_kind kind, uint64_t length);
/* As far as it goes without waiting. `early` has what was read from `from` before, and gets what was
 * read beyond the end; `pending` is what `to` did not take yet. */
enum flow_state flow_run(struct flow *f, struct sock *from, struct buf *early, struct sock *to,
                         struct buf *pending);
/* Puts what is there early behind what is pending, so that a head and a small body are one write.
 * -EBADMSG as FLOW_BROKEN. */
int flow_gather(struct flow *f, struct buf *early, struct buf *pending);
/* Write what is pending: 1 all of it, 0 some is left, below zero: lost. */
int flow_flush(struct sock *to, struct buf *pending);
