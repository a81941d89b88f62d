/* frames - a byte stream in WebSocket frames (RFC 6455): bytes in, pieces out, and back.
 *
 * What passes is a stream, so that the borders of messages mean nothing: data is handed out as it
 * comes and nothing of it is kept, however long a frame says that it is. Close is the end of one
 * direction. Read strictly: what the RFC forbids, text and extensions included, is -EPROTO. wslay
 * does the reading and writing of frames; no I/O is done here. Messages of others, whose borders are to be
 * kept, are read by net/redact_frames.h. */
#pragma once
#include <stddef.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define FRAMES_CONTROL_MAX 125 /* bytes in a ping */
#define FRAMES_HEAD_MAX 14

struct frames;

enum frames_side { FRAMES_SERVER, FRAMES_CLIENT }; /* which one we are: the client masks */
enum frames_kind { FRAMES_DATA, FRAMES_PING, FRAMES_PONG, FRAMES_CLOSE };

enum frames_code {
    FRAMES_NORMAL = 1000,
    FRAMES_WRONG = 1002,  /* not frames as they must be */
    FRAMES_BROKEN = 1011, /* what the stream comes from broke off */
};

struct frames_piece {
    enum frames_kind kind;
    const char *p; /* until the next call */
    size_t n;
    unsigned code; /* FRAMES_CLOSE; 0: none was said */
};

int frames_new(enum frames_side side, struct frames **ret_frames);
void frames_free(struct frames *f);
DEFINE_FREEP(struct frames *, frames_free)

/* Bytes of the other side; kept until frames_next has said 0. */
void frames_feed(struct frames *f, const void *p, size_t n);
/* 1 and the next piece, 0: feed more, -EPROTO: the end. */
int frames_next(struct frames *f, struct frames_piece *ret_piece);

/* Append a frame. A failure leaves half of one: the end. */
int frames_put(struct frames *f, enum frames_kind kind, const void *p, size_t n, struct buf *out);
int frames_put_close(struct frames *f, enum frames_code code, struct buf *out);
