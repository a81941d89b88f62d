#include "broker/flow.h"

#include <errno.h>
#include <sys/socket.h>

#define TURN_MAX (1024 * 1024) /* then others get their turn */
#define FILL_BYTES (16 * 1024)
#define DRAIN_MAX (1024 * 1024)

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

int flow_fill(struct sock *from, struct buf *in)
{
    int r = buf_reserve(in, FILL_BYTES);
    if (r < 0)
        return r;
    ssize_t n = sock_read(from, in->data + in->len, FILL_BYTES);
    if (n == -EAGAIN && in->len == 0)
        buf_done(in);
    if (n <= 0)
        return n == -EAGAIN ? 0 : -ECONNRESET;
    in->len += (size_t)n;
    return 1;
}

int flow_drain(struct sock *from, size_t *drained)
{
    char nowhere[4096];
    while (*drained < DRAIN_MAX) {
        ssize_t n = recv(from->fd, nowhere, sizeof(nowhere), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (n <= 0)
            return -ECONNRESET;
        *drained += (size_t)n;
    }
    return -ECONNRESET;
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
    f->passed += used;
    r = buf_append(pending, early->data, used);
    buf_drop_front(early, used);
    return r;
}

enum flow_state flow_pump(const struct flow_ends *ends, const struct flow_ops *ops, void *arg,
                          const bool *over, size_t most)
{
    if (most == 0 || most > TURN_MAX)
        most = TURN_MAX;
    for (size_t moved = 0;;) {
        int flushed = flow_flush(ends->to, ends->pending);
        if (flushed <= 0)
            return flushed < 0 ? FLOW_TO_LOST : FLOW_WAIT_TO;
        if (*over)
            return FLOW_DONE;
        struct buf *early = ends->early;
        bool was_early = early->len > 0;
        /* What TLS has read already, nobody would be woken for. */
        if (!was_early && moved >= most && !sock_has_more(ends->from))
            return FLOW_WAIT_FROM;
        size_t room = moved < most && most - moved < sizeof(piece) ? most - moved : sizeof(piece);
        ssize_t n = was_early ? (ssize_t)early->len : sock_read(ends->from, piece, room);
        if (n == -EAGAIN)
            return FLOW_WAIT_FROM;
        if (n <= 0) {
            if (n < 0 || ops->end(arg, ends) < 0)
                return FLOW_FROM_LOST;
            continue;
        }
        const char *p = was_early ? early->data : piece;
        size_t used = 0;
        int r = ops->take(arg, ends, p, (size_t)n, &used);
        if (r < 0)
            return r == -EBADMSG ? FLOW_BROKEN : FLOW_TO_LOST;
        moved += used;
        if (was_early)
            buf_drop_front(early, used);
        else if (used < (size_t)n && buf_append(early, p + used, (size_t)n - used) < 0)
            return FLOW_BROKEN;
    }
}

static int take(void *arg, const struct flow_ends *ends, const char *p, size_t n, size_t *ret_used)
{
    struct flow *f = arg;
    int r = body_take(&f->body, p, n, ret_used);
    if (r < 0)
        return -EBADMSG;
    f->over = r > 0;
    f->passed += *ret_used;
    r = pass_on(ends->to, ends->pending, p, *ret_used);
    return r == -EBADMSG ? -EPIPE : r;
}

static int take_end(void *arg, const struct flow_ends *ends)
{
    struct flow *f = arg;
    f->over = f->ended = f->body.kind == BODY_UNTIL_END;
    return f->over ? 0 : -ECONNRESET;
}

enum flow_state flow_run(struct flow *f, struct sock *from, struct buf *early, struct sock *to,
                         struct buf *pending)
{
    static const struct flow_ops ops = { take, take_end };
    const struct flow_ends ends = { from, early, to, pending };
    return flow_pump(&ends, &ops, f, &f->over, f->most);
}

/* ---- what has come of a run ---- */

int flow_result(enum flow_state s)
{
    switch (s) {
    case FLOW_DONE: return 1;
    case FLOW_WAIT_FROM:
    case FLOW_WAIT_TO: return 0;
    case FLOW_FROM_LOST:
    case FLOW_TO_LOST:
    case FLOW_BROKEN: break;
    }
    return -ECONNRESET;
}

int flow_sent(enum flow_state s, struct buf *pending, bool *lost)
{
    if (s == FLOW_BROKEN)
        return -EBADMSG;
    if (s != FLOW_TO_LOST)
        return flow_result(s);
    buf_done(pending);
    *lost = true;
    return 1;
}

int flow_tunnelled(enum flow_state s, struct sock *to, bool *ended)
{
    int r = flow_result(s);
    if (r > 0 && !*ended)
        sock_end(to);
    *ended |= r > 0;
    return r < 0 ? r : 0;
}
