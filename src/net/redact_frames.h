/* redact_frames - a server's WebSocket messages on their way, with every secret hidden.
 *
 * A message may come in any number of frames; it is looked through as one text and framed anew, so
 * that no border can part a secret. What is known to be free of one goes on at once, a message's end at the latest.
 * Extensions, under which nothing could be found, are refused. Pure.
 *
 * ws/frames.h is another thing: there a stream of bytes is packed into frames whose borders and kinds mean
 * nothing, by either side. Here both ends are somebody else's, and kinds, borders of messages and the order of
 * control frames among them have to come out as they went in. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/redact.h"

#define REDACT_FRAMES_HEAD_MAX 10
#define REDACT_FRAMES_CONTROL_MAX 125

struct redact_frames {
    unsigned char head[REDACT_FRAMES_HEAD_MAX];
    unsigned n_head;
    bool in_payload;
    uint64_t left;   /* of this frame's payload */
    unsigned opcode; /* of the message that is under way; 0: none is */
    bool begun;      /* a frame of it has gone on */
    char control[REDACT_FRAMES_CONTROL_MAX];
    size_t n_control;
};

/* Appends what may go on; a zeroed `f` is one that begins. -EBADMSG: not what a server may send. */
int redact_frames_take(struct redact_frames *f, struct redact *redact, const char *p, size_t n,
                       struct buf *out);
