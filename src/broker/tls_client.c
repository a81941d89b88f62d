#include "broker/tls_client.h"

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

#define LOG_MODULE "tls"
#define PIECE (16 * 1024) /* one record of TLS */

struct half {
    struct buf pending; /* read, and not yet written */
    bool ended;         /* no more will be read */
    bool done;          /* and the other side knows */
};

struct tls_client {
    struct loop *loop;
    struct tls_client *next, **at;
    struct later later;
    struct sock plain, secured;
    struct half out, in; /* to the world, and back */
    bool closed;
};

static void tls_client_free(struct later *l)
{
    free(container_of(l, struct tls_client, later));
}

static void tls_client_close(struct tls_client *v)
{
    if (v->closed)
        return;
    v->closed = true;
    sock_close(&v->plain);
    sock_close(&v->secured);
    buf_done(&v->out.pending);
    buf_done(&v->in.pending);
    *v->at = v->next;
    if (v->next)
        v->next->at = v->at;
    loop_defer(v->loop, &v->later, tls_client_free);
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

static void say_why(const struct tls_client *v)
{
    long why = v->secured.ssl ? SSL_get_verify_result(v->secured.ssl) : X509_V_OK;
    if (!v->secured.ssl || SSL_is_init_finished(v->secured.ssl))
        return;
    log_warn("a proxy was left: TLS with it could not be begun err=\"%s\"",
             why == X509_V_OK ? "it broke off" : X509_verify_cert_error_string(why));
}

static void step(struct tls_client *v)
{
    uint32_t plain = 0, secured = 0;
    int r = run_half(&v->out, &v->plain, &v->secured, &plain, &secured);
    if (r == 0)
        r = run_half(&v->in, &v->secured, &v->plain, &secured, &plain);
    /* It is writable all the while, which would keep the loop busy. */
    if (v->secured.write_needs_in)
        secured = (secured & ~(uint32_t)EPOLLOUT) | EPOLLIN;
    if (v->out.done)
        plain |= EPOLLPRI; /* never comes, but keeps it in the loop: a hangup is told */
    if (r == 0 && !(v->out.done && v->in.done) && sock_want(&v->plain, plain) == 0 &&
        sock_want(&v->secured, secured) == 0)
        return;
    if (r < 0)
        say_why(v);
    tls_client_close(v);
}

static void on_plain(struct watch *w, uint32_t events)
{
    struct tls_client *v =
        container_of(container_of(w, struct sock, watch), struct tls_client, plain);
    if (v->out.done && (events & EPOLLHUP))
        tls_client_close(v); /* nobody is there to read any more */
    else
        step(v);
}

static void on_secured(struct watch *w, uint32_t events)
{
    step(container_of(container_of(w, struct sock, watch), struct tls_client, secured));
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

int tls_client_begin(struct tls_clients *tls_clients, struct loop *loop, struct trust *trust,
                     const char *host, const char *address, int fd, int *ret_fd)
{
    struct tls_client *v = calloc(1, sizeof(*v));
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
    sock_init(&v->secured, loop, fd, on_secured);
    v->secured.ssl = ssl;
    v->next = tls_clients->first;
    v->at = &tls_clients->first;
    if (v->next)
        v->next->at = &v->next;
    tls_clients->first = v;
    if (sock_want(&v->plain, EPOLLIN) < 0) {
        tls_client_close(v);
        (void)close(pair[1]);
        return -ENOMEM;
    }
    *ret_fd = pair[1];
    return 0;
}

void tls_clients_close(struct tls_clients *tls_clients)
{
    while (tls_clients->first)
        tls_client_close(tls_clients->first);
}
