/* talk - a worker's end of its connection: frames out, frames in, and whether anyone listens.
 *
 * Blocking. Answers are gathered and go out when there are many of them, or at a flush; a DATA
 * frame's bytes come in pieces, as they arrive, so that they are copied once. An end of the
 * stream is -EPIPE wherever it is met: the worker has nobody left to work for. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "wire/wire.h"

struct talk {
    int fd;
    size_t in_at, in_n; /* of the buffer behind talk.c */
    const char *first;  /* what came with the request, to be read before the socket */
    size_t first_n;
    size_t data_left; /* of the DATA frame being read */
    int pipe[2];      /* between the connection and a file; -1 before talk_into needs it */
    bool lean;        /* only what is asked for is read: the rest can go into a file unseen */
    size_t out_n;
    unsigned beats;
    struct buf b; /* the frame being put together */
};

/* Takes neither: `fd` blocks from now on, `first` is borrowed for as long as the talk. */
void talk_init(struct talk *t, int fd, const char *first, size_t first_n);
void talk_done(struct talk *t);

struct buf *talk_begin(struct talk *t);                 /* an empty payload to put fields in */
int talk_end(struct talk *t, enum wire_type type);      /* send it, soon */
int talk_data(struct talk *t, const void *p, size_t n); /* a DATA frame */
/* A DATA frame of n bytes from where `file` stands: how many there were. Fewer than n only when the
 * file ended early; the rest of the frame is then zeros. */
ssize_t talk_data_file(struct talk *t, int file, size_t n);
int talk_zeros(struct talk *t, uint64_t n); /* DATA frames of nothing */
int talk_flush(struct talk *t);

/* The next frame. Of any but DATA the payload is there whole, valid until the next call. */
int talk_next(struct talk *t, struct wire_header *ret_h, const char **ret_payload);
/* More of the DATA frame: its length; 0: the frame is at its end. Valid until the next call. */
ssize_t talk_piece(struct talk *t, const char **ret_p);

/* More of the DATA frame straight into `file`, uncopied where the kernel can: how many bytes; 0: the frame is at
 * its end. A failure of the file's is in *ret_failure, and the result is -EIO. */
ssize_t talk_into(struct talk *t, int file, int *ret_failure);

/* Between two steps of anything long: -EPIPE once the other side is gone. The first looks every
 * time, the second now and then, for steps that are short. */
int talk_look(struct talk *t);
int talk_beat(struct talk *t);
