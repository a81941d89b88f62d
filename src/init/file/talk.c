#include "init/file/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/fd.h"

#define OUT_BYTES (64u * 1024)                      /* answers gathered for one send */
#define IN_BYTES (WIRE_HEADER_SIZE + WIRE_BULK_MAX) /* a whole frame of the largest kind */
#define COPY_MAX (32u * 1024)                       /* file bytes up to this join the answers */
#define PATIENCE_S 900           /* for one piece to be taken or to come: a client may pause */
#define FRAME_MAX (1024u * 1024) /* an answer: a path and all its extended attributes */
#define BEAT_EVERY 64
#define SPLICE_MIN (16u * 1024) /* fewer bytes are copied sooner than a pipe is made for them */

/* Static, not on the stack or the heap: untouched pages of it cost init nothing. */
static char out[OUT_BYTES], in[IN_BYTES];

static int fill(struct talk *t, size_t room);

void talk_init(struct talk *t, int fd, const char *first, size_t first_n)
{
    struct timeval patience = { .tv_sec = PATIENCE_S };
    *t = (struct talk){
        .fd = fd, .first = first, .first_n = first_n, .pipe = { -1, -1 }, .b = BUF_INIT(FRAME_MAX)
    };
    if (first_n > 0)
        (void)fill(
            t, IN_BYTES); /* now: the request's last string may be terminated over its first byte */
    (void)fd_set_nonblock(fd, false);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

void talk_done(struct talk *t)
{
    buf_done(&t->b);
    fd_close_all(t->pipe, 2);
}

/* ---- out ---- */

static int send_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t r = send(fd, p, n, MSG_NOSIGNAL);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return errno == ECONNRESET || errno == EAGAIN ? -EPIPE : -errno;
        p += r;
        n -= (size_t)r;
    }
    return 0;
}

int talk_flush(struct talk *t)
{
    size_t n = t->out_n;
    t->out_n = 0;
    return send_all(t->fd, out, n);
}

static int put(struct talk *t, const void *p, size_t n)
{
    int r = 0;
    if (n > OUT_BYTES - t->out_n)
        r = talk_flush(t);
    if (r < 0)
        return r;
    if (n > OUT_BYTES)
        return send_all(t->fd, p, n);
    if (n)
        memcpy(out + t->out_n, p, n);
    t->out_n += n;
    return 0;
}

static int put_header(struct talk *t, enum wire_type type, size_t n)
{
    unsigned char head[WIRE_HEADER_SIZE];
    wire_header_put(head, &(struct wire_header){ .len = (uint32_t)n, .type = (uint8_t)type });
    return put(t, head, sizeof(head));
}

struct buf *talk_begin(struct talk *t)
{
    buf_clear(&t->b);
    return &t->b;
}

int talk_end(struct talk *t, enum wire_type type)
{
    int r = put_header(t, type, t->b.len);
    return r < 0 ? r : put(t, t->b.data, t->b.len);
}

int talk_data(struct talk *t, const void *p, size_t n)
{
    int r = put_header(t, WIRE_DATA, n);
    return r < 0 ? r : put(t, p, n);
}

/* What is missing of a frame whose length is told already. */
static int put_zeros(struct talk *t, size_t n)
{
    while (n > 0) {
        int r = t->out_n == OUT_BYTES ? talk_flush(t) : 0;
        if (r < 0)
            return r;
        size_t some = n < OUT_BYTES - t->out_n ? n : OUT_BYTES - t->out_n;
        memset(out + t->out_n, 0, some);
        t->out_n += some;
        n -= some;
    }
    return 0;
}

int talk_zeros(struct talk *t, uint64_t n)
{
    int r = 0;
    while (r == 0 && n > 0) {
        size_t some = n < WIRE_BULK_MAX ? (size_t)n : WIRE_BULK_MAX;
        r = put_header(t, WIRE_DATA, some);
        if (r == 0)
            r = put_zeros(t, some);
        n -= some;
    }
    return r;
}

/* Few bytes are copied behind the answers before them: one send for many small files. */
static ssize_t copy_file(struct talk *t, int file, size_t n)
{
    size_t done = 0;
    int r = OUT_BYTES - t->out_n < n ? talk_flush(t) : 0;
    if (r < 0)
        return r;
    while (done < n) {
        ssize_t some = read(file, out + t->out_n, n - done);
        if (some < 0 && errno == EINTR)
            continue;
        if (some <= 0)
            break;
        t->out_n += (size_t)some;
        done += (size_t)some;
    }
    return (ssize_t)done;
}

static ssize_t splice_file(struct talk *t, int file, size_t n)
{
    size_t done = 0;
    int r = talk_flush(t);
    if (r < 0)
        return r;
    while (done < n) {
        ssize_t some = sendfile(t->fd, file, NULL, n - done);
        if (some < 0 && errno == EINTR)
            continue;
        if (some < 0 && (errno == EPIPE || errno == ECONNRESET || errno == EAGAIN))
            return -EPIPE;
        if (some < 0 && errno == EINVAL) { /* a file that cannot be spliced can be read */
            size_t piece = n - done < COPY_MAX ? n - done : COPY_MAX;
            some = copy_file(t, file, piece);
            r = some < 0 ? (int)some : talk_flush(t);
            if (r < 0)
                return r;
        }
        if (some <= 0)
            break;
        done += (size_t)some;
    }
    return (ssize_t)done;
}

ssize_t talk_data_file(struct talk *t, int file, size_t n)
{
    int r = put_header(t, WIRE_DATA, n);
    if (r < 0)
        return r;
    ssize_t done = n <= COPY_MAX ? copy_file(t, file, n) : splice_file(t, file, n);
    if (done < 0 || (size_t)done == n)
        return done;
    r = put_zeros(t, n - (size_t)done);
    return r < 0 ? r : done;
}

/* ---- in ---- */

/* More bytes behind those that are there, `room` at most; the buffer has it. */
static int fill(struct talk *t, size_t room)
{
    if (t->first_n > 0) {
        size_t n = t->first_n < room ? t->first_n : room;
        memcpy(in + t->in_n, t->first, n);
        t->first += n;
        t->first_n -= n;
        t->in_n += n;
        return 0;
    }
    int r = t->out_n > 0 ? talk_flush(t) : 0;
    if (r < 0)
        return r;
    ssize_t n;
    do
        n = recv(t->fd, in + t->in_n, room, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return -EPIPE;
    t->in_n += (size_t)n;
    return 0;
}

/* Have n bytes in one piece at in_at. */
static int need(struct talk *t, size_t n)
{
    if (t->in_n - t->in_at >= n)
        return 0;
    if (t->in_at > 0) {
        memmove(in, in + t->in_at, t->in_n - t->in_at);
        t->in_n -= t->in_at;
        t->in_at = 0;
    }
    int r = 0;
    while (r == 0 && t->in_n < n)
        r = fill(t, (t->lean ? n : IN_BYTES) - t->in_n);
    return r;
}

int talk_next(struct talk *t, struct wire_header *ret_h, const char **ret_payload)
{
    const char *p;
    ssize_t left;
    while ((left = talk_piece(t, &p)) > 0)
        ; /* bytes that nobody wanted */
    if (left < 0)
        return (int)left;
    int r = need(t, WIRE_HEADER_SIZE);
    if (r == 0)
        r = wire_header_get((const unsigned char *)in + t->in_at, ret_h);
    if (r < 0)
        return r;
    t->in_at += WIRE_HEADER_SIZE;
    *ret_payload = NULL;
    if (ret_h->type == WIRE_DATA) {
        t->data_left = ret_h->len;
        return 0;
    }
    if (ret_h->len > WIRE_BULK_MAX)
        return -EPROTO;
    r = need(t, ret_h->len);
    if (r < 0)
        return r;
    *ret_payload = in + t->in_at;
    t->in_at += ret_h->len;
    return 0;
}

ssize_t talk_piece(struct talk *t, const char **ret_p)
{
    if (t->data_left == 0)
        return 0;
    if (t->in_at == t->in_n) {
        t->in_at = t->in_n = 0;
        int r = fill(t, t->lean && t->data_left < IN_BYTES ? t->data_left : IN_BYTES);
        if (r < 0)
            return r;
    }
    size_t n = t->in_n - t->in_at < t->data_left ? t->in_n - t->in_at : t->data_left;
    *ret_p = in + t->in_at;
    t->in_at += n;
    t->data_left -= n;
    return (ssize_t)n;
}

static bool open_pipe(struct talk *t)
{
    if (t->pipe[0] >= 0)
        return true;
    if (pipe2(t->pipe, O_CLOEXEC) < 0) {
        t->pipe[0] = t->pipe[1] = -1;
        return false;
    }
    (void)fcntl(t->pipe[1], F_SETPIPE_SZ, (int)WIRE_BULK_MAX); /* smaller does, too */
    return true;
}

static int write_all(int file, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t some = write(file, p, n);
        if (some < 0 && errno == EINTR)
            continue;
        if (some < 0)
            return -errno;
        p += some;
        n -= (size_t)some;
    }
    return 0;
}

/* Copy the pipe's bytes into a file that splice cannot write (one that is appended to). */
static int copy_pipe(struct talk *t, int file, size_t n)
{
    t->in_at = t->in_n = 0; /* nothing is buffered: it would have gone first */
    while (n > 0) {
        ssize_t some = read(t->pipe[0], in, n < IN_BYTES ? n : IN_BYTES);
        if (some < 0 && errno == EINTR)
            continue;
        if (some <= 0)
            return some < 0 ? -errno : -EIO;
        int r = write_all(file, in, (size_t)some);
        if (r < 0)
            return r;
        n -= (size_t)some;
    }
    return 0;
}

static int empty_pipe(struct talk *t, int file, size_t n)
{
    while (n > 0) {
        ssize_t some = splice(t->pipe[0], NULL, file, NULL, n, 0);
        if (some < 0 && errno == EINTR)
            continue;
        if (some < 0 && errno == EINVAL)
            return copy_pipe(t, file, n);
        if (some <= 0)
            return some < 0 ? -errno : -EIO;
        n -= (size_t)some;
    }
    return 0;
}

/* 0: the kernel cannot, here. */
static ssize_t splice_into(struct talk *t, int file, int *ret_failure)
{
    ssize_t n;
    if (!open_pipe(t))
        return 0;
    do
        n = splice(t->fd, NULL, t->pipe[1], NULL, t->data_left, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EINVAL)
        return 0;
    if (n <= 0)
        return -EPIPE;
    t->data_left -= (size_t)n;
    *ret_failure = empty_pipe(t, file, (size_t)n);
    return *ret_failure < 0 ? -EIO : n;
}

ssize_t talk_into(struct talk *t, int file, int *ret_failure)
{
    const char *p;
    ssize_t n = 0;
    t->lean |= t->data_left >= SPLICE_MIN;
    if (t->in_at == t->in_n && t->first_n == 0 && t->data_left >= SPLICE_MIN) {
        int r = t->out_n > 0 ? talk_flush(t) : 0;
        n = r < 0 ? r : splice_into(t, file, ret_failure);
        if (n != 0)
            return n;
    }
    n = talk_piece(t, &p);
    if (n > 0)
        *ret_failure = write_all(file, p, (size_t)n);
    return n > 0 && *ret_failure < 0 ? -EIO : n;
}

int talk_look(struct talk *t)
{
    int events = fd_wait(t->fd, POLLRDHUP, 0);
    return events & (POLLRDHUP | POLLHUP | POLLERR) ? -EPIPE : 0;
}

int talk_beat(struct talk *t)
{
    return ++t->beats % BEAT_EVERY == 0 ? talk_look(t) : 0;
}
