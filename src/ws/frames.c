#include "ws/frames.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <wslay/wslay.h>

#include "base/id.h"

#define CODE_BYTES 2

struct frames {
    wslay_frame_context_ptr ctx;
    enum frames_side side;
    const char *in;
    size_t in_n;
    struct buf *out;
    bool in_message; /* a message of several frames has begun */
    uint64_t taken;  /* of the frame at hand */
    uint8_t control[FRAMES_CONTROL_MAX];
};

static ssize_t on_recv(uint8_t *p, size_t n, int flags, void *arg)
{
    struct frames *f = arg;
    if (f->in_n == 0)
        return -1; /* wait */
    n = n < f->in_n ? n : f->in_n;
    memcpy(p, f->in, n);
    f->in += n;
    f->in_n -= n;
    return (ssize_t)n;
}

static ssize_t on_send(const uint8_t *p, size_t n, int flags, void *arg)
{
    struct frames *f = arg;
    return buf_append(f->out, p, n) < 0 ? -1 : (ssize_t)n;
}

static int on_mask(uint8_t *p, size_t n, void *arg)
{
    return random_bytes(p, n) < 0 ? -1 : 0;
}

int frames_new(enum frames_side side, struct frames **ret_frames)
{
    static const struct wslay_frame_callbacks callbacks = { on_send, on_recv, on_mask };
    struct frames *f = calloc(1, sizeof(*f));
    if (!f)
        return -ENOMEM;
    f->side = side;
    if (wslay_frame_context_init(&f->ctx, &callbacks, f) < 0) {
        free(f);
        return -ENOMEM;
    }
    *ret_frames = f;
    return 0;
}

void frames_free(struct frames *f)
{
    if (!f)
        return;
    wslay_frame_context_free(f->ctx);
    free(f);
}

/* ---- in ---- */

void frames_feed(struct frames *f, const void *p, size_t n)
{
    f->in = p;
    f->in_n = n;
}

/* A close may say a number, and why in UTF-8, which nobody reads. */
static int read_close(const struct frames *f, size_t n, struct frames_piece *ret)
{
    if (n == 1)
        return -EPROTO;
    ret->code = n ? (unsigned)f->control[0] << 8 | f->control[1] : 0;
    return n == 0 || (ret->code >= 1000 && ret->code < 5000) ? 1 : -EPROTO;
}

/* 1: it is all there. */
static int take_control(struct frames *f, const struct wslay_frame_iocb *io,
                        struct frames_piece *ret)
{
    if (io->payload_length > FRAMES_CONTROL_MAX)
        return -EPROTO;
    if (io->data_length)
        memcpy(f->control + f->taken, io->data, io->data_length);
    f->taken += io->data_length;
    if (f->taken < io->payload_length)
        return 0;
    size_t n = (size_t)f->taken;
    f->taken = 0;
    *ret = (struct frames_piece){ .p = (const char *)f->control, .n = n };
    switch (io->opcode) {
    case WSLAY_PING: ret->kind = FRAMES_PING; return 1;
    case WSLAY_PONG: ret->kind = FRAMES_PONG; return 1;
    case WSLAY_CONNECTION_CLOSE: ret->kind = FRAMES_CLOSE; return read_close(f, n, ret);
    default: return -EPROTO;
    }
}

static int take_data(struct frames *f, const struct wslay_frame_iocb *io, struct frames_piece *ret)
{
    bool begins = io->opcode == WSLAY_BINARY_FRAME;
    if (!begins && io->opcode != WSLAY_CONTINUATION_FRAME)
        return -EPROTO;
    if (f->taken == 0 && begins == f->in_message) /* one within another, or none to go on with */
        return -EPROTO;
    f->taken += io->data_length;
    *ret = (struct frames_piece){ FRAMES_DATA, (const char *)io->data, io->data_length, 0 };
    if (f->taken == io->payload_length) {
        f->taken = 0;
        f->in_message = !io->fin;
    }
    return io->data_length ? 1 : 0;
}

int frames_next(struct frames *f, struct frames_piece *ret_piece)
{
    for (;;) {
        struct wslay_frame_iocb io = { 0 };
        ssize_t got = wslay_frame_recv(f->ctx, &io);
        if (got == WSLAY_ERR_WANT_READ)
            return 0;
        if (got < 0 || io.rsv || !io.mask != (f->side == FRAMES_CLIENT))
            return -EPROTO;
        int r = wslay_is_ctrl_frame(io.opcode) ? take_control(f, &io, ret_piece)
                                               : take_data(f, &io, ret_piece);
        if (r != 0)
            return r;
    }
}

/* ---- out ---- */

int frames_put(struct frames *f, enum frames_kind kind, const void *p, size_t n, struct buf *out)
{
    static const uint8_t opcodes[] = { [FRAMES_DATA] = WSLAY_BINARY_FRAME,
                                       [FRAMES_PING] = WSLAY_PING,
                                       [FRAMES_PONG] = WSLAY_PONG,
                                       [FRAMES_CLOSE] = WSLAY_CONNECTION_CLOSE };
    struct wslay_frame_iocb io = { .fin = 1,
                                   .opcode = opcodes[kind],
                                   .payload_length = n,
                                   .mask = f->side == FRAMES_CLIENT,
                                   .data = p,
                                   .data_length = n };
    f->out = out;
    ssize_t sent = wslay_frame_send(f->ctx, &io);
    f->out = NULL;
    return sent >= 0 && (size_t)sent == n ? 0 : -ENOMEM;
}

int frames_put_close(struct frames *f, enum frames_code code, struct buf *out)
{
    const uint8_t bytes[CODE_BYTES] = { (uint8_t)(code >> 8), (uint8_t)code };
    return frames_put(f, FRAMES_CLOSE, bytes, sizeof(bytes), out);
}
