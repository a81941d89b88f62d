/* init_conn - one connection to a sandbox's warren-init: frames in and out, with deadlines.
 *
 * Private to process*.c and file*.c. Reading is buffered: one receive may bring several frames.
 * Each wait has a deadline and may watch a second descriptor, so that a client which went away
 * ends the wait. Input for a process can be left here to be sent while waiting, in pieces, so that
 * a command whose output nobody reads yet cannot lock up with us. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "wire/wire.h"

struct init_conn {
    int fd;
    struct buf in;
    size_t at; /* where the first frame not handed out begins */
    /* what is left to feed */
    const char *feed;
    size_t feed_left, frame_left, head_left;
    unsigned char head[WIRE_HEADER_SIZE];
    bool feeding, feed_ended;
    size_t data_left; /* of the DATA frame that init_conn_data is in */
};

struct init_frame {
    struct wire_header h;
    const char *p; /* h.len bytes, valid until the next receive */
};

#define INIT_ANSWER_MS 10000 /* init answers in well under a millisecond; a stuck one is dead */

int init_conn_open(const char *run_dir, const char *id, struct init_conn *ret_c, struct err *err);
void init_conn_done(struct init_conn *c);
/* Sends a whole frame, waiting for room at most timeout_ms. */
int init_conn_send(struct init_conn *c, enum wire_type type, const void *p, size_t n,
                   int timeout_ms);
/* Send the first frame of an operation. An init that refuses a connection may have closed it
 * already: ECONNRESET is no failure here, since the refusal can still be read. */
int init_conn_begin(struct init_conn *c, enum wire_type type, const void *p, size_t n,
                    int timeout_ms);
/* The same with a header of the caller's, whose length is filled in. */
int init_conn_begin_frame(struct init_conn *c, const struct wire_header *h, const void *p, size_t n,
                          int timeout_ms);
/* A frame whose n bytes come from `from`, another socket, through `pipe`, uncopied. *ret_taken is how many were
 * taken from there, also on failure; the frame is then never whole. -ENODATA: `from` ended; -ETIME: it had
 * nothing for from_ms; -EOPNOTSUPP: nothing was sent, this socket cannot. */
int init_conn_pass(struct init_conn *c, enum wire_type type, int from, size_t n, const int pipe[2],
                   int from_ms, int timeout_ms, size_t *ret_taken);
/* Whole frames that were made before, at once. */
int init_conn_send_frames(struct init_conn *c, const struct buf *frames, int timeout_ms);
/* 0 and a frame; -ETIMEDOUT, -ECANCELED (hangup_fd's peer went away), -ECONNRESET (init did),
 * -EPROTO. timeout_ms -1: none; hangup_fd -1: none. */
int init_conn_recv(struct init_conn *c, int timeout_ms, int hangup_fd, struct init_frame *ret_f);
/* Bytes of DATA frames, received straight into `out` where nothing is buffered: how many, or 0
 * when the next frame is not DATA (init_conn_recv has it); failures as of init_conn_recv. */
ssize_t init_conn_data(struct init_conn *c, void *out, size_t max, int timeout_ms, int hangup_fd);
/* The next frame's header, which stays where it is: in the socket. Only before the first receive. */
int init_conn_peek(struct init_conn *c, int timeout_ms, int hangup_fd, struct wire_header *ret_h);
/* Sends p and then the end of input while later receives wait. Keeps p until the end. */
void init_conn_feed(struct init_conn *c, const void *p, size_t n);
/* The failure that an ERROR frame tells of. */
int init_conn_error(const struct init_frame *f, struct err *err);
/* The sentence for a send or a receive that failed; r is passed through. */
int init_conn_lost(struct err *err, int r, const char *id);
