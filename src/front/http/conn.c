#include "front/http/conn.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#define DRAIN_BYTES (64 * 1024)

struct conn_room {
    size_t at, len; /* in[at..len): read and not used yet */
    bool has_head;
    struct body body;
    struct head head;
    char first[HEAD_MAX]; /* the head, kept apart while more bytes come in */
    char in[CONN_IN_BYTES];
};

struct conn *conn_new(int fd, const struct sockaddr *peer, socklen_t n)
{
    struct conn *c = calloc(1, sizeof(*c));
    if (!c) {
        (void)close(fd);
        return NULL;
    }
    c->fd = fd;
    c->lease_fd = c->watch.fd = -1;
    c->peer_len = n <= sizeof(c->peer) ? n : sizeof(c->peer);
    memcpy(&c->peer, peer, c->peer_len);
    return c;
}

void conn_free(struct conn *c)
{
    if (!c)
        return;
    if (c->fd >= 0)
        (void)close(c->fd);
    if (c->lease_fd >= 0)
        (void)close(c->lease_fd);
    free(c->room);
    free(c);
}

int conn_lend(struct conn *c, int *ret_fd, int *ret_lease_fd)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return -errno;
    int fd = fcntl(c->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        int r = -errno;
        fd_close_all(pair, 2);
        return r;
    }
    c->lease_fd = pair[0];
    *ret_fd = fd;
    *ret_lease_fd = pair[1];
    return 0;
}

bool conn_leave_behind(struct conn *c)
{
    if (c->lease_fd < 0)
        return false;
    (void)close(c->fd);
    c->fd = take_fd(c->lease_fd);
    c->lent = true;
    return true;
}

/* ---- a request ---- */

/* Read more bytes behind those in the buffer: 1; 0 at the end. */
static int fill(struct conn *c, int64_t deadline_ms)
{
    struct conn_room *m = c->room;
    if (m->at > 0) {
        memmove(m->in, m->in + m->at, m->len - m->at);
        m->len -= m->at;
        m->at = 0;
    }
    for (;;) {
        ssize_t n = recv(c->fd, m->in + m->len, sizeof(m->in) - m->len, MSG_DONTWAIT);
        if (n > 0)
            m->len += (size_t)n;
        if (n >= 0)
            return n > 0;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return -errno;
        int64_t left = deadline_ms - clock_mono_ms();
        int r = left > 0 ? fd_wait(c->fd, POLLIN, (int)left) : 0;
        if (r <= 0)
            return r < 0 ? r : -ETIMEDOUT;
    }
}

static void end_text(struct text t)
{
    ((char *)(uintptr_t)t.p)[t.n] = '\0'; /* overwrites the blank, colon or line end behind it */
}

static int take_head(struct conn_room *m, size_t n)
{
    if (n > sizeof(m->first))
        return -EMSGSIZE;
    memcpy(m->first, m->in + m->at, n);
    m->at += n;
    int r = head_request(m->first, n, &m->head);
    if (r < 0)
        return r;
    end_text(m->head.method);
    end_text(m->head.target);
    for (size_t i = 0; i < m->head.nfields; i++) {
        end_text(m->head.fields[i].name);
        end_text(m->head.fields[i].value);
    }
    m->has_head = true;
    body_start(&m->body, m->head.body, m->head.length);
    return 1;
}

int conn_read_head(struct conn *c, int64_t deadline_ms)
{
    size_t seen = 0;
    if (!c->room) {
        c->room = malloc(sizeof(*c->room));
        if (!c->room)
            return -ENOMEM;
        c->room->at = c->room->len = 0;
    }
    struct conn_room *m = c->room;
    m->has_head = false;
    for (;;) {
        if (m->len > m->at && !isalpha((unsigned char)m->in[m->at]))
            return -EBADMSG; /* no method begins like this, so do not wait for more */
        size_t end = head_end(m->in + m->at, m->len - m->at, seen);
        if (end > 0)
            return take_head(m, end);
        seen = m->len - m->at;
        if (seen > HEAD_MAX)
            return -EMSGSIZE;
        int r = fill(c, deadline_ms);
        if (r <= 0)
            return r < 0 || seen == 0 ? r : -EBADMSG;
    }
}

const struct head *conn_head(const struct conn *c)
{
    return c->room && c->room->has_head ? &c->room->head : NULL;
}

const char *conn_header(const struct conn *c, const char *name)
{
    const struct head *h = conn_head(c);
    for (size_t i = 0; h && i < h->nfields; i++)
        if (strcasecmp(h->fields[i].name.p, name) == 0)
            return h->fields[i].value.p;
    return NULL;
}

int conn_read_body(struct conn *c, int64_t deadline_ms, const char **ret_p, size_t *ret_n)
{
    struct conn_room *m = c->room;
    size_t used;
    if (m->at == m->len && m->body.kind != BODY_EMPTY) {
        int r = fill(c, deadline_ms);
        if (r <= 0)
            return r < 0 ? r : -EPIPE;
    }
    int r = body_read(&m->body, m->in + m->at, m->len - m->at, &used, ret_p, ret_n);
    if (r >= 0)
        m->at += used;
    return r;
}

uint64_t conn_body_alone(const struct conn *c)
{
    const struct conn_room *m = c->room;
    return m->at == m->len && m->body.kind == BODY_LENGTH ? m->body.left : 0;
}

void conn_body_taken(struct conn *c, uint64_t n)
{
    c->room->body.left -= n;
}

bool conn_body_begun(const struct conn *c)
{
    return c->room->body.kind == BODY_EMPTY || conn_has_more(c);
}

bool conn_has_more(const struct conn *c)
{
    return c->room && c->room->at < c->room->len;
}

void conn_drop_room(struct conn *c)
{
    free(c->room);
    c->room = NULL;
}

/* ---- the answer ---- */

int conn_write(struct conn *c, struct iovec *iov, size_t n, int stall_ms)
{
    struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };
    for (;;) {
        while (msg.msg_iovlen > 0 && msg.msg_iov->iov_len == 0) {
            msg.msg_iov++;
            msg.msg_iovlen--;
        }
        if (msg.msg_iovlen == 0)
            return 0;
        ssize_t sent = sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EAGAIN) {
            int r = fd_wait(c->fd, POLLOUT, stall_ms);
            if (r <= 0)
                return r < 0 ? r : -ETIMEDOUT;
        } else if (sent < 0 && errno != EINTR) {
            return -errno;
        }
        for (struct iovec *v = msg.msg_iov; sent > 0; v++) {
            size_t took = (size_t)sent < v->iov_len ? (size_t)sent : v->iov_len;
            v->iov_base = (char *)v->iov_base + took;
            v->iov_len -= took;
            sent -= (ssize_t)took;
        }
    }
}

void conn_finish(struct conn *c, int max_ms)
{
    char rest[4096];
    int64_t end = clock_mono_ms() + max_ms;
    size_t all = 0;
    (void)shutdown(c->fd, SHUT_WR);
    for (;;) {
        ssize_t n = recv(c->fd, rest, sizeof(rest), MSG_DONTWAIT);
        int64_t left = end - clock_mono_ms();
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || left <= 0)
            return;
        all += n > 0 ? (size_t)n : 0;
        if (all > DRAIN_BYTES || (n < 0 && fd_wait(c->fd, POLLIN, (int)left) <= 0))
            return;
    }
}

void conn_turn_away(struct conn *c)
{
    static const char body[] = "{\"error\":{\"code\":\"capacity\","
                               "\"message\":\"too many connections are open; try again\","
                               "\"request_id\":\"none\"}}";
    char rest[4096], head[256];
    for (int i = 0; i < DRAIN_BYTES / 4096 && recv(c->fd, rest, sizeof(rest), MSG_DONTWAIT) > 0;)
        i++;
    int n = snprintf(
        head, sizeof(head),
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
        "X-Request-Id: none\r\nRetry-After: 10\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
        sizeof(body) - 1);
    struct iovec iov[] = { { head, (size_t)n }, { (char *)(uintptr_t)body, sizeof(body) - 1 } };
    struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
    (void)sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}
