#include "core/init_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"

#define READ_FIRST 4096                        /* a short command's whole answer */
#define READ_FULL (WIRE_DATA_MAX + READ_FIRST) /* a full frame of output, and the next head */
#define IN_MAX (WIRE_HEADER_SIZE + WIRE_PAYLOAD_MAX)

static int not_running(struct err *err, const char *id)
{
    return err_fail_as(err, ENOTCONN, FAIL_SANDBOX_NOT_RUNNING,
                       "sandbox '%s' does not answer: it is not running", id);
}

int init_conn_open(const char *run_dir, const char *id, struct init_conn *ret_c, struct err *err)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    int n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/cells/%s/init.sock", run_dir, id);
    if (n < 0 || (size_t)n >= sizeof(sa.sun_path))
        return err_set(err, ENAMETOOLONG, "run directory '%s' is too long a path", run_dir);

    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_set(err, errno, "cannot make a socket for sandbox '%s'", id);
    /* Only connect is ever left to block, and only while init's backlog is full. */
    struct timeval wait = { .tv_sec = INIT_ANSWER_MS / 1000 };
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    int r;
    do
        r = connect(fd, (struct sockaddr *)&sa, sizeof(sa));
    while (r < 0 && errno == EINTR);
    if (r < 0 && (errno == ECONNREFUSED || errno == ENOENT))
        return not_running(err, id);
    if (r < 0 && errno == EAGAIN)
        return err_fail(err, FAIL_SANDBOX_BUSY, "sandbox '%s' takes no more commands", id);
    if (r < 0)
        return err_set(err, errno, "cannot reach the init of sandbox '%s'", id);
    *ret_c = (struct init_conn){ .fd = take_fd(fd), .in = BUF_INIT(IN_MAX) };
    return 0;
}

void init_conn_done(struct init_conn *c)
{
    if (c->fd >= 0)
        (void)close(c->fd);
    c->fd = -1;
    buf_done(&c->in);
}

/* The part of the deadline that is left, for poll. */
static int left_ms(int64_t deadline)
{
    if (deadline < 0)
        return -1;
    int64_t left = deadline - clock_mono_ms();
    return left < 0 ? 0 : (int)left;
}

static int64_t deadline_of(int timeout_ms)
{
    return timeout_ms < 0 ? -1 : clock_mono_ms() + timeout_ms;
}

/* All that the message holds; it is used up. */
static int send_all(struct init_conn *c, struct msghdr *m, int timeout_ms)
{
    int64_t deadline = -2; /* the clock is read only if the socket is full */

    for (;;) {
        ssize_t sent = sendmsg(c->fd, m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EAGAIN) {
            if (deadline == -2)
                deadline = deadline_of(timeout_ms);
            struct pollfd pf = { .fd = c->fd, .events = POLLOUT };
            int r = poll(&pf, 1, left_ms(deadline));
            if (r == 0)
                return -ETIMEDOUT;
            if (r < 0 && errno != EINTR)
                return -errno;
            continue;
        }
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EPIPE ? -ECONNRESET : -errno;
        size_t done = (size_t)sent;
        while (m->msg_iovlen > 0 && done >= m->msg_iov->iov_len) {
            done -= m->msg_iov->iov_len;
            m->msg_iov++;
            m->msg_iovlen--;
        }
        if (m->msg_iovlen == 0)
            return 0;
        m->msg_iov->iov_base = (char *)m->msg_iov->iov_base + done;
        m->msg_iov->iov_len -= done;
    }
}

static int send_frame(struct init_conn *c, const struct wire_header *header, const void *p,
                      size_t n, int timeout_ms)
{
    if (n > WIRE_PAYLOAD_MAX)
        return -EMSGSIZE;
    unsigned char head[WIRE_HEADER_SIZE];
    struct wire_header h = *header;
    h.len = (uint32_t)n;
    wire_header_put(head, &h);
    struct iovec iov[2] = { { head, sizeof(head) }, { (void *)(uintptr_t)p, n } };
    return send_all(c, &(struct msghdr){ .msg_iov = iov, .msg_iovlen = n ? 2 : 1 }, timeout_ms);
}

int init_conn_send(struct init_conn *c, enum wire_type type, const void *p, size_t n,
                   int timeout_ms)
{
    return send_frame(c, &(struct wire_header){ .type = (uint8_t)type }, p, n, timeout_ms);
}

int init_conn_begin_frame(struct init_conn *c, const struct wire_header *h, const void *p, size_t n,
                          int timeout_ms)
{
    int r = send_frame(c, h, p, n, timeout_ms);
    return r == -ECONNRESET ? 0 : r;
}

/* Move the pipe's bytes to init. */
static int empty_pipe(struct init_conn *c, int pipe, size_t n, int timeout_ms)
{
    int64_t deadline = deadline_of(timeout_ms);
    while (n > 0) {
        ssize_t sent = splice(pipe, NULL, c->fd, NULL, n, SPLICE_F_NONBLOCK);
        if (sent > 0) {
            n -= (size_t)sent;
        } else if (sent == 0 || errno == EAGAIN) {
            struct pollfd pf = { .fd = c->fd, .events = POLLOUT };
            int r = poll(&pf, 1, left_ms(deadline));
            if (r == 0)
                return -ETIMEDOUT;
            if (r < 0 && errno != EINTR)
                return -errno;
        } else if (errno != EINTR) {
            return errno == EPIPE ? -ECONNRESET : -errno;
        }
    }
    return 0;
}

/* Some bytes of `from` into the pipe; 0: there are none yet. */
static ssize_t fill_pipe(int from, int pipe, size_t n)
{
    ssize_t got;
    do
        got = splice(from, NULL, pipe, NULL, n, SPLICE_F_NONBLOCK);
    while (got < 0 && errno == EINTR);
    if (got > 0 || (got < 0 && errno == EAGAIN))
        return got > 0 ? got : 0;
    return got < 0 && errno == EINVAL ? -EINVAL : -ENODATA; /* a reset is an end, too */
}

/* Wait for the first bytes before the frame begins, so that one who stops between two frames breaks
 * none off. */
static int pass_frame(struct init_conn *c, enum wire_type type, int from, size_t n,
                      const int pipe[2], int from_ms, int timeout_ms, size_t *ret_taken)
{
    unsigned char head[WIRE_HEADER_SIZE];
    struct iovec iov = { head, sizeof(head) };
    bool begun = false;
    wire_header_put(head, &(struct wire_header){ .len = (uint32_t)n, .type = (uint8_t)type });
    *ret_taken = 0;
    while (*ret_taken < n) {
        ssize_t got = fill_pipe(from, pipe[1], n - *ret_taken);
        int r = 0;
        if (got == -EINVAL && !begun)
            return -EOPNOTSUPP;
        if (got < 0)
            return (int)got;
        if (got == 0) {
            r = fd_wait(from, POLLIN, from_ms);
            if (r <= 0)
                return r < 0 ? r : -ETIME;
            continue;
        }
        *ret_taken += (size_t)got;
        if (!begun)
            r = send_all(c, &(struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 }, timeout_ms);
        begun = true;
        if (r == 0)
            r = empty_pipe(c, pipe[0], (size_t)got, timeout_ms);
        if (r < 0)
            return r;
    }
    return 0;
}

/* splice waits for room in a socket whatever its flags say, unless the socket itself does not wait: a sandbox that
 * stops its file worker would hold the caller for ever. */
int init_conn_pass(struct init_conn *c, enum wire_type type, int from, size_t n, const int pipe[2],
                   int from_ms, int timeout_ms, size_t *ret_taken)
{
    *ret_taken = 0;
    int r = fd_set_nonblock(c->fd, true);
    if (r < 0)
        return r;
    r = pass_frame(c, type, from, n, pipe, from_ms, timeout_ms, ret_taken);
    int back = fd_set_nonblock(c->fd, false);
    return r < 0 ? r : back;
}

int init_conn_begin(struct init_conn *c, enum wire_type type, const void *p, size_t n,
                    int timeout_ms)
{
    return init_conn_begin_frame(c, &(struct wire_header){ .type = (uint8_t)type }, p, n,
                                 timeout_ms);
}

int init_conn_send_frames(struct init_conn *c, const struct buf *frames, int timeout_ms)
{
    struct iovec iov = { frames->data, frames->len };
    return send_all(c, &(struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 }, timeout_ms);
}

void init_conn_feed(struct init_conn *c, const void *p, size_t n)
{
    c->feed = p;
    c->feed_left = n;
    c->feeding = true;
}

static void feed_next_frame(struct init_conn *c)
{
    struct wire_header h = { .type = WIRE_STDIN_EOF };
    if (c->feed_left > 0) {
        h.type = WIRE_INPUT;
        h.len = c->feed_left < WIRE_DATA_MAX ? (uint32_t)c->feed_left : WIRE_DATA_MAX;
    } else {
        c->feed_ended = true;
    }
    wire_header_put(c->head, &h);
    c->head_left = WIRE_HEADER_SIZE;
    c->frame_left = h.len;
}

/* Send what the socket takes. A failure only ends the feeding: the reading side learns why. */
static void feed_step(struct init_conn *c)
{
    while (c->feeding) {
        if (c->head_left == 0 && c->frame_left == 0) {
            if (c->feed_ended) {
                c->feeding = false;
                return;
            }
            feed_next_frame(c);
        }
        struct iovec iov[2] = {
            { c->head + WIRE_HEADER_SIZE - c->head_left, c->head_left },
            { (void *)(uintptr_t)c->feed, c->frame_left },
        };
        struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };
        ssize_t sent = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            c->feeding = errno == EAGAIN;
            return;
        }
        size_t n = (size_t)sent, of_head = n < c->head_left ? n : c->head_left;
        c->head_left -= of_head;
        n -= of_head;
        c->feed += n;
        c->feed_left -= n;
        c->frame_left -= n;
    }
}

/* 1 and a frame if the buffer holds a whole one; else 0 and how large the buffer must be. */
static int take_frame(struct init_conn *c, struct init_frame *ret_f, size_t *ret_need)
{
    size_t have = c->in.len - c->at;
    *ret_need = READ_FIRST;
    if (have < WIRE_HEADER_SIZE)
        return 0;
    struct wire_header h;
    int r = wire_header_get((const unsigned char *)c->in.data + c->at, &h);
    if (r < 0)
        return r;
    if (have - WIRE_HEADER_SIZE < h.len) {
        size_t whole = WIRE_HEADER_SIZE + h.len;
        *ret_need = whole > READ_FIRST && whole < READ_FULL ? READ_FULL : whole;
        return 0;
    }
    *ret_f = (struct init_frame){ h, c->in.data + c->at + WIRE_HEADER_SIZE };
    c->at += WIRE_HEADER_SIZE + h.len;
    return 1;
}

static int fill(struct init_conn *c, size_t need)
{
    if (c->at > 0) {
        buf_drop_front(&c->in, c->at);
        c->at = 0;
    }
    if (need > c->in.len) {
        int r = buf_reserve(&c->in, need - c->in.len);
        if (r < 0)
            return r;
    }
    ssize_t n;
    do
        n = recv(c->fd, c->in.data + c->in.len, c->in.cap - 1 - c->in.len, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return -ECONNRESET;
    if (n < 0)
        return errno == EAGAIN ? 0 : -errno;
    c->in.len += (size_t)n;
    return 0;
}

int init_conn_recv(struct init_conn *c, int timeout_ms, int hangup_fd, struct init_frame *ret_f)
{
    int64_t deadline = -2;

    for (;;) {
        size_t need;
        int r = take_frame(c, ret_f, &need);
        if (r != 0)
            return r < 0 ? r : 0;
        if (c->feeding)
            feed_step(c);
        if (deadline == -2)
            deadline = deadline_of(timeout_ms);
        struct pollfd pf[2] = {
            { .fd = c->fd, .events = (short)(POLLIN | (c->feeding ? POLLOUT : 0)) },
            { .fd = hangup_fd, .events = POLLRDHUP },
        };
        r = poll(pf, hangup_fd < 0 ? 1 : 2, left_ms(deadline));
        if (r < 0 && errno != EINTR)
            return -errno;
        if (r == 0)
            return -ETIMEDOUT;
        if (r < 0)
            continue;
        if (pf[1].revents)
            return -ECANCELED;
        if (pf[0].revents & ~POLLOUT) {
            r = fill(c, need);
            if (r < 0)
                return r;
        }
    }
}

/* 0 once fd can be read; -ETIMEDOUT, -ECANCELED. */
static int wait_readable(int fd, int timeout_ms, int hangup_fd)
{
    struct pollfd pf[2] = { { .fd = fd, .events = POLLIN },
                            { .fd = hangup_fd, .events = POLLRDHUP } };
    int r;
    do
        r = poll(pf, hangup_fd < 0 ? 1 : 2, timeout_ms);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return -errno;
    if (r == 0)
        return -ETIMEDOUT;
    return pf[0].revents ? 0 : -ECANCELED;
}

/* One receive: `want` bytes to out, and what lies behind them, a header at most, to the buffer. The
 * buffer is empty, or want is 0. */
static ssize_t receive(struct init_conn *c, void *out, size_t want, size_t behind, int timeout_ms,
                       int hangup_fd)
{
    struct iovec iov[2] = { { out, want }, { c->in.data + c->in.len, behind } };
    struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };
    for (;;) {
        ssize_t n = recvmsg(c->fd, &m, MSG_DONTWAIT);
        if (n == 0)
            return -ECONNRESET;
        if (n > 0) {
            size_t got = (size_t)n < want ? (size_t)n : want;
            c->in.len += (size_t)n - got;
            return (ssize_t)got;
        }
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
        int r = errno == EINTR ? 0 : wait_readable(c->fd, timeout_ms, hangup_fd);
        if (r < 0)
            return r;
    }
}

ssize_t init_conn_data(struct init_conn *c, void *out, size_t max, int timeout_ms, int hangup_fd)
{
    int64_t deadline = deadline_of(timeout_ms);
    for (;;) {
        size_t have = c->in.len - c->at;
        if (have == 0) {
            c->in.len = c->at = 0;
            int r = buf_reserve(&c->in, READ_FIRST);
            if (r < 0)
                return r;
        }
        if (c->data_left == 0 && have >= WIRE_HEADER_SIZE) {
            struct wire_header h;
            int r = wire_header_get((const unsigned char *)c->in.data + c->at, &h);
            if (r < 0)
                return r;
            if (h.type != WIRE_DATA)
                return 0;
            c->at += WIRE_HEADER_SIZE;
            c->data_left = h.len;
            if (h.len == 0 && left_ms(deadline) == 0) /* frames without a byte, one by one */
                return -ETIMEDOUT;
        } else if (c->data_left == 0) {
            ssize_t n = receive(c, NULL, 0, WIRE_HEADER_SIZE - have, left_ms(deadline), hangup_fd);
            if (n < 0)
                return n;
        } else {
            size_t want = c->data_left < max ? c->data_left : max;
            size_t behind = want == c->data_left ? WIRE_HEADER_SIZE : 0;
            ssize_t n = (ssize_t)(have < want ? have : want);
            if (have > 0) {
                memcpy(out, c->in.data + c->at, (size_t)n);
                c->at += (size_t)n;
            } else {
                n = receive(c, out, want, behind, left_ms(deadline), hangup_fd);
            }
            if (n > 0)
                c->data_left -= (size_t)n;
            if (n != 0)
                return n;
        }
    }
}

int init_conn_peek(struct init_conn *c, int timeout_ms, int hangup_fd, struct wire_header *ret_h)
{
    unsigned char head[WIRE_HEADER_SIZE];
    for (;;) {
        int r = wait_readable(c->fd, timeout_ms, hangup_fd);
        if (r < 0)
            return r;
        ssize_t n = recv(c->fd, head, sizeof(head), MSG_PEEK | MSG_DONTWAIT);
        if (n == (ssize_t)sizeof(head))
            return wire_header_get(head, ret_h);
        if (n >= 0) /* a header is sent in one piece: this one will not come */
            return n == 0 ? -ECONNRESET : -EPROTO;
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
    }
}

int init_conn_error(const struct init_frame *f, struct err *err)
{
    struct wire_reader reader = { f->p, f->h.len };
    struct wire_field field;
    enum failure failure = FAIL_NONE;
    char msg[ERR_MSG_MAX] = "";
    int r;

    while ((r = wire_next(&reader, &field)) > 0) {
        if (field.tag == WIRE_T_MESSAGE) {
            size_t n = field.n < sizeof(msg) - 1 ? field.n : sizeof(msg) - 1;
            memcpy(msg, field.p, n);
            msg[n] = '\0';
        }
        if (field.tag == WIRE_T_WHAT)
            failure = failure_find(field.p, field.n, FAILURE_BY_INIT);
    }
    if (r < 0)
        return err_set(err, EPROTO, "the sandbox's init sent a malformed answer");
    return err_fail(err, failure, "%s", msg[0] ? msg : "the sandbox's init refused");
}

int init_conn_lost(struct err *err, int r, const char *id)
{
    if (r == -ETIMEDOUT)
        return err_fail_as(err, ETIMEDOUT, FAIL_SANDBOX_BUSY, "sandbox '%s' did not answer in time",
                           id);
    if (r == -ECONNRESET)
        return err_fail_as(err, ECONNRESET, FAIL_SANDBOX_NOT_RUNNING,
                           "sandbox '%s' ended before it answered", id);
    if (r == -EPROTO)
        return err_set(err, EPROTO, "the init of sandbox '%s' sent what is not an answer", id);
    return err_set(err, -r, "cannot talk to the init of sandbox '%s'", id);
}
