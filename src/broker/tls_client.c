#include "broker/veil.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "broker/flow.h"
#include "broker/sock.h"
#include "broker/trust.h"

#define LOG_MODULE "veil"
#define PIECE (16 * 1024) /* one record of TLS */

struct half {
    struct buf pending; /* read, and not yet written */
    bool ended;         /* no more will be read */
    bool done;          /* and the other side knows */
};

struct veil {
    struct loop *loop;
    struct veil *next, **at;
    struct later later;
    struct sock plain, coated;
    struct half out, in; /* to the world, and back */
    bool closed;
};

static void veil_free(struct later *l)
{
    free(container_of(l, struct veil, later));
}

static void veil_close(struct veil *v)
{
    if (v->closed)
        return;
    v->closed = true;
    sock_close(&v->plain);
    sock_close(&v->coated);
    buf_done(&v->out.pending);
    buf_done(&v->in.pending);
    *v->at = v->next;
    if (v->next)
        v->next->at = v->at;
    loop_defer(v->loop, &v->later, veil_free);
}

/* As far as it goes: what to wait for on each side, or below zero. */
static int run_half(struct half *h, struct sock *from, struct sock *to, uint32_t *ret_from,
                    uint32_t *ret_to)
{
    static char piece[PIECE]; /* the loop has one thread */
    while (!h->done) {
        int r = flow_flush(to, &h->pending);
        if (r < 0)
            return r;
        if (r == 0) {
            *ret_to |= EPOLLOUT;
            return 0;
        }
        if (h->ended) {
            sock_end(to);
            h->done = true;
            return 0;
        }
        ssize_t n = sock_read(from, piece, sizeof(piece));
        if (n == -EAGAIN) {
            *ret_from |= EPOLLIN;
            return 0;
        }
        h->ended = n == 0;
        if (n < 0 || (n > 0 && buf_append(&h->pending, piece, (size_t)n) < 0))
            return n < 0 ? (int)n : -ENOMEM;
    }
    return 0;
}

static void say_why(const struct veil *v)
{
    long why = v->coated.ssl ? SSL_get_verify_result(v->coated.ssl) : X509_V_OK;
    if (!v->coated.ssl || SSL_is_init_finished(v->coated.ssl))
        return;
    log_warn("a proxy was left: TLS with it could not be begun err=\"%s\"",
             why == X509_V_OK ? "it broke off" : X509_verify_cert_error_string(why));
}

static void step(struct veil *v)
{
    uint32_t plain = 0, coated = 0;
    int r = run_half(&v->out, &v->plain, &v->coated, &plain, &coated);
    if (r == 0)
        r = run_half(&v->in, &v->coated, &v->plain, &coated, &plain);
    if (v->coated.write_needs_in) /* it is writable all the while, which would keep the loop busy */
        coated = (coated & ~(uint32_t)EPOLLOUT) | EPOLLIN;
    if (v->out.done)
        plain |= EPOLLPRI; /* never comes, but keeps it in the loop: a hangup is told */
    if (r == 0 && !(v->out.done && v->in.done) && sock_want(&v->plain, plain) == 0 &&
        sock_want(&v->coated, coated) == 0)
        return;
    if (r < 0)
        say_why(v);
    veil_close(v);
}

static void on_plain(struct watch *w, uint32_t events)
{
    struct veil *v = container_of(container_of(w, struct sock, watch), struct veil, plain);
    if (v->out.done && (events & EPOLLHUP))
        veil_close(v); /* nobody is there to read any more */
    else
        step(v);
}

static void on_coated(struct watch *w, uint32_t events)
{
    step(container_of(container_of(w, struct sock, watch), struct veil, coated));
}

static SSL *new_ssl(struct trust *trust, const char *host, const char *address, int fd)
{
    SSL_CTX *ctx = trust_context(trust);
    SSL *ssl = ctx ? SSL_new(ctx) : NULL;
    if (ssl && SSL_set_fd(ssl, fd) == 1 && trust_expect(ssl, host, address) == 0) {
        SSL_set_connect_state(ssl);
        return ssl;
    }
    ERR_clear_error();
    SSL_free(ssl);
    return NULL;
}

int veil_begin(struct veils *veils, struct loop *loop, struct trust *trust, const char *host,
               const char *address, int fd, int *ret_fd)
{
    struct veil *v = calloc(1, sizeof(*v));
    SSL *ssl = v ? new_ssl(trust, host, address, fd) : NULL;
    int pair[2];
    if (!ssl || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0) {
        SSL_free(ssl);
        free(v);
        (void)close(fd);
        return -ENOMEM;
    }
    v->loop = loop;
    v->out.pending = v->in.pending = (struct buf)BUF_INIT(PIECE);
    sock_init(&v->plain, loop, pair[0], on_plain);
    sock_init(&v->coated, loop, fd, on_coated);
    v->coated.ssl = ssl;
    v->next = veils->first;
    v->at = &veils->first;
    if (v->next)
        v->next->at = &v->next;
    veils->first = v;
    if (sock_want(&v->plain, EPOLLIN) < 0) {
        veil_close(v);
        (void)close(pair[1]);
        return -ENOMEM;
    }
    *ret_fd = pair[1];
    return 0;
}

void veils_close(struct veils *veils)
{
    while (veils->first)
        veil_close(veils->first);
}
