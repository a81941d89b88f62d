/* process_conn - one connection to a sandbox's warren-init: frames in and out, with deadlines.
 *
 * Private to process*.c. Reading is buffered: one receive may bring several frames. Each wait
 * has a deadline and may watch a second descriptor, so that a client which went away ends the
 * wait. Input for the process can be left here to be sent while waiting, in pieces, so that a
 * command whose output nobody reads yet cannot lock up with us. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "wire/wire.h"

struct process_conn {
    int fd;
    struct buf in;
    size_t at; /* where the first frame not handed out begins */
    /* what is left to feed */
    const char *feed;
    size_t feed_left, frame_left, head_left;
    unsigned char head[WIRE_HEADER_SIZE];
    bool feeding, feed_ended;
};

struct process_frame {
    struct wire_header h;
    const char *p; /* h.len bytes, valid until the next receive */
};

#define PROCESS_ANSWER_MS 10000 /* init answers in well under a millisecond; a stuck one is dead */

int process_conn_open(const char *run_dir, const char *id, struct process_conn *ret_c,
                      struct err *err);
void process_conn_done(struct process_conn *c);
/* Sends a whole frame, waiting for room at most timeout_ms. */
int process_conn_send(struct process_conn *c, enum wire_type type, const void *p, size_t n,
                      int timeout_ms);
/* 0 and a frame; -ETIMEDOUT, -ECANCELED (hangup_fd's peer went away), -ECONNRESET (init did),
 * -EPROTO. timeout_ms -1: none; hangup_fd -1: none. */
int process_conn_recv(struct process_conn *c, int timeout_ms, int hangup_fd,
                      struct process_frame *ret_f);
/* Sends p and then the end of input while later receives wait. Keeps p until the end. */
void process_conn_feed(struct process_conn *c, const void *p, size_t n);
/* The failure that an ERROR frame tells of. */
int process_conn_error(const struct process_frame *f, struct err *err);
/* The sentence for a send or a receive that failed; r is passed through. */
int process_conn_lost(struct err *err, int r, const char *id);
