#include "broker/tls.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#define LOG_MODULE "tls"
#define ROUND_MAX 64
#define PAUSE_MS 100
#define DEFER_S 10

struct tls {
    SSL_CTX *ctx;
    struct loop *loop;
    struct watch watch;
    struct deadline pause;
    int fd;
    void (*fn)(void *arg, int fd, SSL *ssl);
    void *arg;
};

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_n,
                           const unsigned char *in, unsigned in_n, void *arg)
{
    static const unsigned char http11[] = "\x08http/1.1";
    unsigned char *chosen = NULL;
    if (SSL_select_next_proto(&chosen, out_n, http11, sizeof(http11) - 1, in, in_n) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static int failed(struct err *err, const char *what, const char *path)
{
    char why[160] = "";
    unsigned long e = ERR_peek_last_error();
    if (e)
        ERR_error_string_n(e, why, sizeof(why));
    return err_set(err, EINVAL, "cannot use the %s '%s': %s", what, path, why);
}

static int load(SSL_CTX *ctx, const char *cert_path, const char *key_path, struct err *err)
{
    if (SSL_CTX_use_certificate_chain_file(ctx, cert_path) != 1)
        return failed(err, "certificate", cert_path);
    if (SSL_CTX_use_PrivateKey_file(ctx, key_path, SSL_FILETYPE_PEM) != 1)
        return failed(err, "key", key_path);
    if (SSL_CTX_check_private_key(ctx) != 1)
        return failed(err, "key (it is another certificate's)", key_path);
    return 0;
}

int tls_new(const char *cert_path, const char *key_path, struct tls **ret_tls, struct err *err)
{
    _cleanup_(tls_freep) struct tls *t = calloc(1, sizeof(*t));
    if (!t)
        return err_set(err, ENOMEM, "cannot allocate the TLS listener");
    t->fd = -1;
    t->watch.fd = -1;
    t->ctx = SSL_CTX_new(TLS_server_method());
    if (!t->ctx || SSL_CTX_set_min_proto_version(t->ctx, TLS1_2_VERSION) != 1)
        return failed(err, "TLS library", "OpenSSL");
    (void)SSL_CTX_set_options(t->ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                          SSL_OP_CIPHER_SERVER_PREFERENCE);
    (void)SSL_CTX_set_mode(t->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                       SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                       SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_session_cache_mode(t->ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_alpn_select_cb(t->ctx, choose_protocol, NULL);
    int r = load(t->ctx, cert_path, key_path, err);
    if (r < 0)
        return r;
    *ret_tls = take_ptr(t);
    return 0;
}

void tls_free(struct tls *t)
{
    if (!t)
        return;
    if (t->loop) {
        loop_remove(t->loop, &t->watch);
        loop_no_deadline(t->loop, &t->pause);
    }
    cleanup_close(&t->fd);
    SSL_CTX_free(t->ctx);
    free(t);
}

static void take(struct tls *t, int fd)
{
    SSL *ssl = SSL_new(t->ctx);
    if (!ssl || SSL_set_fd(ssl, fd) != 1) {
        ERR_clear_error();
        SSL_free(ssl);
        (void)close(fd);
        return;
    }
    SSL_set_accept_state(ssl);
    t->fn(t->arg, fd, ssl);
}

static void on_paused(struct deadline *d)
{
    struct tls *t = container_of(d, struct tls, pause);
    if (loop_add(t->loop, &t->watch, t->fd, EPOLLIN) < 0)
        log_error("cannot watch the listening socket; no connection will be taken");
}

static void on_listen(struct watch *w, uint32_t events)
{
    struct tls *t = container_of(w, struct tls, watch);
    for (int i = 0; i < ROUND_MAX; i++) {
        int fd = accept4(t->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
            log_warn("no descriptor is left for a connection; waiting for one");
            loop_remove(t->loop, &t->watch);
            loop_deadline(t->loop, &t->pause, clock_mono_ms() + PAUSE_MS, on_paused);
            return;
        }
        if (fd < 0)
            return;
        take(t, fd);
    }
}

int tls_listen(struct tls *t, struct loop *loop, int fd,
               void (*fn)(void *arg, int fd, struct ssl_st *ssl), void *arg, struct err *err)
{
    const int defer_s = DEFER_S;
    t->fd = fd;
    t->loop = loop;
    t->fn = fn;
    t->arg = arg;
    t->watch = (struct watch){ -1, on_listen };
    (void)setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer_s, sizeof(defer_s));
    int r = fd_set_nonblock(fd, true);
    if (r >= 0)
        r = loop_add(loop, &t->watch, fd, EPOLLIN);
    return r < 0 ? err_set(err, -r, "cannot wait for TLS connections") : 0;
}
