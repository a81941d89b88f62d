#include "broker/sock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ALIVE_S 60 /* TCP's own probes, for a peer that is gone without a word */

void sock_tune(int fd)
{
    const int on = 1, alive_s = ALIVE_S, every_s = ALIVE_S / 4, probes = 4;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* may be a unix socket */
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &alive_s, sizeof(alive_s));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof(every_s));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

void sock_init(struct sock *s, struct loop *loop, int fd,
               void (*fn)(struct watch *w, uint32_t events))
{
    *s = (struct sock){ .loop = loop, .watch = { -1, fn }, .fd = fd };
}

void sock_close(struct sock *s)
{
    if (s->fd < 0)
        return;
    loop_remove(s->loop, &s->watch);
    if (s->ssl) {
        ERR_clear_error();
        SSL_free(s->ssl);
    }
    s->ssl = NULL;
    (void)close(s->fd);
    s->fd = -1;
    s->wanted = 0;
}

int sock_want(struct sock *s, uint32_t events)
{
    if ((events & EPOLLIN) && s->read_needs_out)
        events |= EPOLLOUT;
    if ((events & EPOLLOUT) && s->write_needs_in)
        events |= EPOLLIN;
    if (events == s->wanted || s->fd < 0)
        return 0;
    int r = 0;
    if (events == 0)
        loop_remove(s->loop, &s->watch);
    else if (s->wanted == 0)
        r = loop_add(s->loop, &s->watch, s->fd, events);
    else
        r = loop_change(s->loop, &s->watch, events);
    if (r >= 0)
        s->wanted = events;
    return r;
}

/* What a call of OpenSSL's came to. */
static ssize_t tls_result(struct sock *s, int r, uint32_t wanted, bool *ret_other)
{
    *ret_other = false;
    if (r > 0)
        return r;
    switch (SSL_get_error(s->ssl, r)) {
    case SSL_ERROR_WANT_READ: *ret_other = wanted == EPOLLOUT; return -EAGAIN;
    case SSL_ERROR_WANT_WRITE: *ret_other = wanted == EPOLLIN; return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN: return 0;
    default: return -ECONNRESET;
    }
}

ssize_t sock_read(struct sock *s, void *p, size_t n)
{
    if (s->ssl) {
        ERR_clear_error();
        return tls_result(s, SSL_read(s->ssl, p, n > INT32_MAX ? INT32_MAX : (int)n), EPOLLIN,
                          &s->read_needs_out);
    }
    ssize_t r;
    do
        r = recv(s->fd, p, n, MSG_DONTWAIT);
    while (r < 0 && errno == EINTR);
    s->got += r > 0 ? (uint64_t)r : 0;
    return r < 0 ? -errno : r;
}

ssize_t sock_write(struct sock *s, const void *p, size_t n)
{
    if (n == 0)
        return 0;
    if (s->ssl) {
        ERR_clear_error();
        return tls_result(s, SSL_write(s->ssl, p, n > INT32_MAX ? INT32_MAX : (int)n), EPOLLOUT,
                          &s->write_needs_in);
    }
    ssize_t r;
    do
        r = send(s->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (r < 0 && errno == EINTR);
    s->put += r > 0 ? (uint64_t)r : 0;
    return r < 0 ? -errno : r;
}

bool sock_is_greeting(const struct sock *s)
{
    return s->ssl && !SSL_is_init_finished(s->ssl);
}

bool sock_has_more(const struct sock *s)
{
    return s->ssl && SSL_pending(s->ssl) > 0;
}

void sock_end(struct sock *s)
{
    if (s->ssl) {
        ERR_clear_error();
        (void)SSL_shutdown(s->ssl);
    }
    (void)shutdown(s->fd, SHUT_WR);
}

void sock_hurry(const struct sock *s)
{
    const int on = 1;
    (void)setsockopt(s->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}
