#include "init/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "init/frame.h"
#include "init/ops.h"
#include "init/park.h"
#include "init/proc.h"

#define FILL_BYTES 4096u               /* of one read, while a frame's length is not known */
#define FILL_MAX (64u * 1024)          /* of one read of a long frame */
#define INPUTS_MAX (32u * 1024 * 1024) /* of all peers: eight of the longest requests at once */
#define OUT_MAX (256u * 1024)          /* gathered answers; gathering stops far below */
#define FLUSH_MAX (512u * 1024)        /* of one peer in one round: the others wait no longer */
#define PATIENCE_MS 30000              /* for a request to be whole, for an answer to be taken */
#define ACCEPT_MS 100                  /* until the next try when accepting failed */
#define REFUSAL_MAX 1024               /* the frame of a refusal */

TAILQ_HEAD(peer_list, peer);

static struct {
    struct peer_list all, dirty, dead;
    size_t n;
    size_t inputs; /* bytes held by `in` of all */
    struct watch listener;
    int spare; /* closed to make room for a client that must be told that no descriptor is left */
    int64_t accept_at; /* monotonic: when to try again; 0: now */
} peers = {
    .all = TAILQ_HEAD_INITIALIZER(peers.all),
    .dirty = TAILQ_HEAD_INITIALIZER(peers.dirty),
    .dead = TAILQ_HEAD_INITIALIZER(peers.dead),
    .listener = WATCH_INIT,
    .spare = -1,
};

size_t peers_count(void)
{
    return peers.n;
}

void peer_dirty(struct peer *c)
{
    if (c->dirty || c->state == PEER_CLOSED)
        return;
    c->dirty = true;
    TAILQ_INSERT_TAIL(&peers.dirty, c, dirty_link);
}

void peer_finish(struct peer *c)
{
    c->state = PEER_CLOSING;
    c->deadline = clock_mono_ms() + PATIENCE_MS;
    poller_wake_at(c->deadline);
    peer_dirty(c);
}

void peer_close(struct peer *c)
{
    if (c->state == PEER_CLOSED)
        return;
    c->state = PEER_CLOSED;
    viewer_remove(&c->viewer);
    feed_remove(&c->feeder);
    sweep_cancel(&c->waiter);
    park_cancel(c);
    poller_close(&c->watch);
    TAILQ_REMOVE(&peers.all, c, link);
    peers.n--;
    TAILQ_INSERT_TAIL(&peers.dead, c, link);
}

static void peer_free(struct peer *c)
{
    peers.inputs -= c->in.cap;
    buf_done(&c->in);
    buf_done(&c->out);
    free(c->listing.pids);
    free(c);
}

/* ---- socket -> in ---- */

/* What is missing of the frame at in_at; 0: it is whole. */
static size_t missing(const struct peer *c)
{
    struct wire_header h;
    size_t have = c->in.len - c->in_at;
    if (have < WIRE_HEADER_SIZE)
        return FILL_BYTES;
    if (wire_header_get((const unsigned char *)c->in.data + c->in_at, &h) < 0)
        return 0; /* the step will find it broken */
    size_t need = WIRE_HEADER_SIZE + h.len;
    return have >= need ? 0 : need - have;
}

static int peer_fill(struct peer *c)
{
    size_t want = missing(c), before = c->in.cap;
    if (want == 0)
        return 0;
    if (want > FILL_MAX)
        want = FILL_MAX;
    int r = buf_reserve(&c->in, want);
    peers.inputs = peers.inputs - before + c->in.cap;
    if (r < 0)
        return r;
    if (peers.inputs > INPUTS_MAX)
        return -ENOBUFS;
    ssize_t n = recv(c->watch.fd, c->in.data + c->in.len, want, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -EPIPE;
    c->in.len += (size_t)n;
    return 0;
}

/* ---- in -> ops ---- */

static bool takes_frames(const struct peer *c)
{
    if (c->state == PEER_REQUEST)
        return !park_is_on();
    return (c->state == PEER_ATTACHED || c->state == PEER_PARKING) && !c->feeder.proc;
}

static void forget_handled(struct peer *c)
{
    if (c->feeder.proc || c->in_at == 0)
        return; /* it points into `in` */
    if (c->in_at == c->in.len && c->in.cap > FILL_BYTES + 1) {
        peers.inputs -= c->in.cap;
        buf_done(&c->in);
    } else {
        buf_drop_front(&c->in, c->in_at);
    }
    c->in_at = 0;
}

static int peer_step(struct peer *c)
{
    while (takes_frames(c) && c->in.len - c->in_at >= WIRE_HEADER_SIZE) {
        struct wire_header h;
        char *at = c->in.data + c->in_at;
        int r = wire_header_get((const unsigned char *)at, &h);
        if (r < 0)
            return r;
        if (c->in.len - c->in_at < WIRE_HEADER_SIZE + h.len)
            break;
        /* A request's last string is terminated in place, over what may be the next frame. */
        char *end = at + WIRE_HEADER_SIZE + h.len, next = *end;
        c->frame_size = WIRE_HEADER_SIZE + h.len;
        r = ops_frame(c, &h, at + WIRE_HEADER_SIZE);
        *end = next;
        if (r < 0)
            return r;
        if (!c->feeder.proc) {
            c->in_at += c->frame_size;
            c->frame_size = 0;
        }
    }
    forget_handled(c);
    return 0;
}

/* ---- out -> socket ---- */

static ssize_t send_some(struct peer *c)
{
    struct iovec iov[3];
    size_t n = 0;
    if (c->out.len > c->out_at)
        iov[n++] = (struct iovec){ c->out.data + c->out_at, c->out.len - c->out_at };
    if (c->output_left > 0) {
        unsigned stream;
        size_t run;
        n += (size_t)ring_peek(&c->viewer.proc->drain.ring, c->viewer.cursor, c->output_left,
                               iov + n, &stream, &run);
    }
    struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
    ssize_t sent = sendmsg(c->watch.fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? -errno : sent;
}

static void note_sent(struct peer *c, size_t n)
{
    size_t of_out = c->out.len - c->out_at < n ? c->out.len - c->out_at : n;
    c->out_at += of_out;
    n -= of_out;
    if (c->out_at == c->out.len) {
        c->out_at = 0;
        buf_clear(&c->out);
    }
    if (n > 0) {
        c->viewer.cursor += n;
        c->output_left -= n;
        viewer_moved(&c->viewer);
    }
}

static int peer_flush(struct peer *c)
{
    size_t budget = FLUSH_MAX;
    c->blocked = false;
    for (;;) {
        int r = ops_gather(c);
        if (r < 0)
            return r;
        if (c->out.len == 0 && c->output_left == 0)
            return c->state == PEER_CLOSING ? -EPIPE : 0;
        ssize_t n = budget > 0 ? send_some(c) : -EAGAIN;
        if (n == -EINTR)
            continue;
        if (n == -EAGAIN) {
            c->blocked = true;
            return 0;
        }
        if (n < 0)
            return (int)n;
        note_sent(c, (size_t)n);
        budget -= budget < (size_t)n ? budget : (size_t)n;
    }
}

/* ---- the round ---- */

static void listen_to(struct peer *c)
{
    /* Whoever cannot be served more now is listened to only for its leaving. */
    uint32_t events = takes_frames(c) ? EPOLLIN : EPOLLRDHUP;
    if (c->blocked)
        events |= EPOLLOUT;
    if (poller_want(&c->watch, events) < 0)
        peer_close(c);
}

static void on_io(struct watch *w, uint32_t events)
{
    struct peer *c = container_of(w, struct peer, watch);
    int r = 0;
    if (events & EPOLLIN)
        r = peer_fill(c);
    else if (events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR))
        r = -EPIPE;
    if (r < 0)
        peer_close(c);
    else
        peer_dirty(c);
}

void peers_settle(void)
{
    struct peer *c;
    while ((c = TAILQ_FIRST(&peers.dirty))) {
        TAILQ_REMOVE(&peers.dirty, c, dirty_link);
        c->dirty = false;
        if (c->state == PEER_CLOSED)
            continue;
        if (peer_step(c) < 0 || peer_flush(c) < 0)
            peer_close(c);
        else
            listen_to(c);
    }
    while ((c = TAILQ_FIRST(&peers.dead))) {
        TAILQ_REMOVE(&peers.dead, c, link);
        peer_free(c);
    }
}

static void try_accepting(int64_t now)
{
    if (now < peers.accept_at) {
        poller_wake_at(peers.accept_at);
        return;
    }
    peers.accept_at = 0;
    if (!park_is_on())
        peers_accept(true);
}

void peers_tick(int64_t now)
{
    if (peers.accept_at)
        try_accepting(now);
    struct peer *c = TAILQ_FIRST(&peers.all);
    while (c) {
        struct peer *next = TAILQ_NEXT(c, link);
        if (c->state == PEER_REQUEST || c->state == PEER_CLOSING) {
            if (now >= c->deadline)
                peer_close(c);
            else
                poller_wake_at(c->deadline);
        }
        c = next;
    }
}

/* ---- accepting ---- */

/* Tell the client why, without waiting for it to read. */
static void refuse(int fd)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REFUSAL_MAX);
    struct err err = ERR_INIT;
    (void)err_fail(&err, FAIL_SANDBOX_BUSY,
                   "the sandbox has too many operations under way; try again");
    if (frame_error(&b, &err) >= 0)
        (void)!send(fd, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)close(fd);
}

static void welcome(int fd)
{
    struct peer *c = peers.n < PEERS_MAX ? calloc(1, sizeof(*c)) : NULL;
    if (!c) {
        refuse(fd);
        return;
    }
    c->watch = (struct watch){ .fd = fd, .fn = on_io };
    c->in.max = WIRE_HEADER_SIZE + WIRE_PAYLOAD_MAX + FILL_BYTES;
    c->out.max = OUT_MAX;
    c->end_offset = UINT64_MAX;
    c->deadline = clock_mono_ms() + PATIENCE_MS;
    poller_wake_at(c->deadline);
    TAILQ_INSERT_TAIL(&peers.all, c, link);
    peers.n++;
    /* The request mostly lies there already: try before asking to be told. */
    if (peer_fill(c) < 0)
        peer_close(c);
    else
        peer_dirty(c);
}

static void keep_spare(void)
{
    if (peers.spare < 0)
        peers.spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Refuse a client for want of descriptors, with the spare one. If even that fails, stop
 * listening for a while: the listener stays readable, and the loop would spin. */
static void turn_away(int listener)
{
    int fd = -1;
    if (peers.spare >= 0) {
        (void)close(take_fd(peers.spare));
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    }
    if (fd >= 0)
        refuse(fd);
    keep_spare();
    if (fd >= 0 && peers.spare >= 0)
        return;
    peers.accept_at = clock_mono_ms() + ACCEPT_MS;
    poller_wake_at(peers.accept_at);
    peers_accept(false);
}

static void on_accept(struct watch *w, uint32_t events)
{
    /* One a round: asking for another mostly costs a call that says no. */
    int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        welcome(fd);
    else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
        turn_away(w->fd);
}

int peers_listen(int fd)
{
    int r = fd_set_nonblock(fd, true);
    if (r < 0)
        return r;
    if (listen(fd, 128) < 0)
        return -errno;
    peers.listener = (struct watch){ .fd = fd, .fn = on_accept };
    keep_spare();
    return poller_want(&peers.listener, EPOLLIN);
}

void peers_accept(bool on)
{
    (void)poller_want(&peers.listener, on ? EPOLLIN : 0);
}

void peers_wake(void)
{
    struct peer *c;
    TAILQ_FOREACH(c, &peers.all, link) {
        /* What waited did not run out of time: it was we who did not listen. */
        c->deadline = clock_mono_ms() + PATIENCE_MS;
        peer_dirty(c);
    }
    poller_again();
}

size_t peers_hand_out(const struct peer *but, int ret_fds[PEERS_MAX], int *ret_listener)
{
    size_t n = 0;
    struct peer *c;
    TAILQ_FOREACH(c, &peers.all, link) {
        (void)poller_want(&c->watch, 0);
        if (c != but)
            ret_fds[n++] = take_fd(c->watch.fd);
    }
    (void)poller_want(&peers.listener, 0);
    *ret_listener = take_fd(peers.listener.fd);
    return n;
}

void peers_take_back(const struct peer *but, int listener, const int *fds, size_t n)
{
    size_t i = 0;
    struct peer *c = TAILQ_FIRST(&peers.all);
    while (c) {
        struct peer *next = TAILQ_NEXT(c, link);
        if (c != but && i < n)
            c->watch.fd = fds[i++];
        else if (c != but)
            peer_close(c);
        c = next;
    }
    peers.listener.fd = listener;
}
