#include "broker/flow.h"

#include <errno.h>

#define TURN_MAX (1024 * 1024) /* then others get their turn */

static char piece[FLOW_PIECE]; /* the loop has one thread */

void flow_start(struct flow *f, enum body_kind kind, uint64_t length)
{
    *f = (struct flow){ .over = kind == BODY_EMPTY };
    body_start(&f->body, kind, length);
}

int flow_flush(struct sock *to, struct buf *pending)
{
    size_t done = 0;
    while (done < pending->len) {
        ssize_t r = sock_write(to, pending->data + done, pending->len - done);
        if (r <= 0 && r != -EAGAIN)
            return r < 0 ? (int)r : -EPIPE;
        if (r < 0)
            break;
        done += (size_t)r;
    }
    if (done == pending->len) {
        buf_done(pending);
        return 1;
    }
    buf_drop_front(pending, done);
    return 0;
}

/* 0, or below zero: the receiver is lost. */
static int pass_on(struct sock *to, struct buf *pending, const char *p, size_t n)
{
    size_t done = 0;
    while (done < n) {
        ssize_t r = sock_write(to, p + done, n - done);
        if (r == -EAGAIN)
            return buf_append(pending, p + done, n - done);
        if (r <= 0)
            return r < 0 ? (int)r : -EPIPE;
        done += (size_t)r;
    }
    return 0;
}

int flow_gather(struct flow *f, struct buf *early, struct buf *pending)
{
    size_t used = 0;
    if (f->over || early->len == 0)
        return 0;
    int r = body_take(&f->body, early->data, early->len, &used);
    if (r < 0)
        return r;
    f->over = r > 0;
    r = buf_append(pending, early->data, used);
    buf_drop_front(early, used);
    return r;
}

enum flow_state flow_run(struct flow *f, struct sock *from, struct buf *early, struct sock *to,
                         struct buf *pending)
{
    for (size_t moved = 0;;) {
        int flushed = flow_flush(to, pending);
        if (flushed <= 0)
            return flushed < 0 ? FLOW_TO_LOST : FLOW_WAIT_TO;
        if (f->over)
            return FLOW_DONE;
        bool was_early = early->len > 0;
        if (!was_early && moved >= TURN_MAX && !sock_has_more(from))
            return FLOW_WAIT_FROM;
        ssize_t n = was_early ? (ssize_t)early->len : sock_read(from, piece, sizeof(piece));
        if (n == -EAGAIN)
            return FLOW_WAIT_FROM;
        if (n <= 0) {
            f->over = f->ended = n == 0 && f->body.kind == BODY_UNTIL_END;
            if (!f->over)
                return FLOW_FROM_LOST;
            continue;
        }
        const char *p = was_early ? early->data : piece;
        size_t used = 0;
        int r = body_take(&f->body, p, (size_t)n, &used);
        if (r < 0)
            return FLOW_BROKEN;
        f->over = r > 0;
        moved += used;
        if (pass_on(to, pending, p, used) < 0)
            return FLOW_TO_LOST;
        if (was_early)
            buf_drop_front(early, used);
        else if (used < (size_t)n && buf_append(early, p + used, (size_t)n - used) < 0)
            return FLOW_BROKEN;
    }
}
