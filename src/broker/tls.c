#include "broker/tls.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "broker/leaf.h"
#include "broker/serve.h"
#include "net/host.h"
#include "wire/broker.h"

#define LOG_MODULE "tls"
#define ROUND_MAX 64
#define PAUSE_MS 100
#define DEFER_S 10
#define PEM_SIZE (128 * 1024) /* a chain and a key of the longest kind, several times */

struct tls {
    SSL_CTX *ctx; /* with the default certificate */
    const char *domain;
    bool has_default, by_files;
    struct leaves *below; /* NULL: none */
    struct named *named;
    struct loop *loop;
    struct watch watch;
    struct deadline pause;
    int fd;
    void (*fn)(void *arg, int fd, SSL *ssl);
    void *arg;
};

static int failed(struct err *err, const char *what, const char *path)
{
    char why[160] = "";
    unsigned long e = ERR_peek_last_error();
    if (e)
        ERR_error_string_n(e, why, sizeof(why));
    return err_set(err, EINVAL, "cannot use the %s '%s': %s", what, path, why);
}

/* ---- which certificate ---- */

struct named {
    struct named *next;
    SSL_CTX *ctx;
    X509 *cert; /* the context's */
    char label[BROKER_HOST_SIZE];
};

static void named_free(struct named *n)
{
    if (n)
        SSL_CTX_free(n->ctx);
    free(n);
}

static SSL_CTX *find_named(const struct tls *t, const char *host)
{
    for (const struct named *n = t->named; n; n = n->next)
        if (strcmp(n->label, host) == 0 && X509_check_host(n->cert, host, 0, 0, NULL) == 1)
            return n->ctx;
    for (const struct named *n = t->named; n; n = n->next)
        if (X509_check_host(n->cert, host, 0, 0, NULL) == 1)
            return n->ctx;
    return NULL;
}

static bool is_below(const char *host, const char *domain)
{
    size_t n = strlen(host), d = strlen(domain);
    return n > d + 1 && host[n - d - 1] == '.' && strcmp(host + n - d, domain) == 0;
}

/* A certificate is for a moment's use: it is the context that a connection keeps alive. */
static int on_name(SSL *ssl, int *alert, void *arg)
{
    struct tls *t = arg;
    const char *said = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    char host[HOST_SIZE];
    if (!said || host_canon(said, strlen(said), host) < 0)
        return SSL_TLSEXT_ERR_OK;
    SSL_CTX *ctx = find_named(t, host);
    if (!ctx && t->below && !strchr(t->domain, '.') && is_below(host, t->domain))
        ctx = leaves_context(t->below, host);
    if (ctx)
        (void)SSL_set_SSL_CTX(ssl, ctx);
    return SSL_TLSEXT_ERR_OK;
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

static SSL_CTX *new_context(struct tls *t)
{
    SSL_CTX *ctx = serve_context(false);
    if (!ctx)
        return NULL;
    (void)SSL_CTX_set_tlsext_servername_callback(ctx, on_name);
    (void)SSL_CTX_set_tlsext_servername_arg(ctx, t);
    return ctx;
}

int tls_new(const char *cert_path, const char *key_path, const char *domain, struct tls **ret_tls,
            struct err *err)
{
    _cleanup_(tls_freep) struct tls *t = calloc(1, sizeof(*t));
    if (!t)
        return err_set(err, ENOMEM, "cannot allocate the TLS listener");
    t->fd = -1;
    t->watch.fd = -1;
    t->domain = domain;
    t->ctx = new_context(t);
    if (!t->ctx)
        return failed(err, "TLS library", "OpenSSL");
    int r = cert_path ? load(t->ctx, cert_path, key_path, err) : 0;
    if (r < 0)
        return r;
    t->has_default = t->by_files = cert_path != NULL;
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
    leaves_free(t->below);
    while (t->named) {
        struct named *n = t->named;
        t->named = n->next;
        named_free(n);
    }
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
    if (r >= 0 && t->has_default)
        r = loop_add(loop, &t->watch, fd, EPOLLIN);
    return r < 0 ? err_set(err, -r, "cannot wait for TLS connections") : 0;
}

/* ---- what warrend says ---- */

/* A certificate, those behind it, and its key. */
static SSL_CTX *read_context(struct tls *t, const char *pem, size_t n, X509 **ret_cert)
{
    BIO *bio = BIO_new_mem_buf(pem, (int)n);
    SSL_CTX *ctx = bio ? new_context(t) : NULL;
    X509 *cert = ctx ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    bool ok = cert && SSL_CTX_use_certificate(ctx, cert) == 1;
    for (X509 *more; ok && (more = PEM_read_bio_X509(bio, NULL, NULL, NULL));)
        if (SSL_CTX_add0_chain_cert(ctx, more) != 1) {
            X509_free(more);
            ok = false;
        }
    ok = ok && BIO_reset(bio) == 1;
    EVP_PKEY *key = ok ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
    ok = key && SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;
    EVP_PKEY_free(key);
    X509_free(cert);
    BIO_free(bio);
    ERR_clear_error();
    if (!ok) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    *ret_cert = SSL_CTX_get0_certificate(ctx);
    return ctx;
}

static void set_default(struct tls *t, SSL_CTX *ctx)
{
    SSL_CTX_free(t->ctx);
    t->ctx = ctx;
    if (!t->has_default && t->loop && loop_add(t->loop, &t->watch, t->fd, EPOLLIN) < 0)
        log_error("cannot watch the listening socket; no connection will be taken");
    t->has_default = true;
}

static void set_named(struct tls *t, const char *label, SSL_CTX *ctx, X509 *cert)
{
    struct named **at = &t->named;
    while (*at && strcmp((*at)->label, label) != 0)
        at = &(*at)->next;
    struct named *old = *at, *n = ctx ? calloc(1, sizeof(*n)) : NULL;
    *at = old ? old->next : NULL;
    named_free(old);
    if (!n) {
        SSL_CTX_free(ctx);
        return;
    }
    n->ctx = ctx;
    n->cert = cert;
    (void)snprintf(n->label, sizeof(n->label), "%s", label);
    n->next = t->named;
    t->named = n;
}

static void set_below(struct tls *t, const char *pem, size_t n)
{
    struct leaves *below = NULL;
    struct err err = ERR_INIT;
    if (leaves_new(pem, n, &below, &err) < 0) {
        log_warn("%s", err.msg);
        return;
    }
    leaves_free(t->below);
    t->below = below;
}

/* Takes fd; -1: nothing is in it. */
static ssize_t read_pem(int fd, char pem[PEM_SIZE])
{
    ssize_t n = fd < 0 ? 0 : pread(fd, pem, PEM_SIZE, 0);
    if (fd >= 0)
        (void)close(fd);
    return n;
}

void tls_files(struct tls *t, int fd)
{
    char pem[PEM_SIZE];
    X509 *cert = NULL;
    ssize_t n = read_pem(fd, pem);
    SSL_CTX *ctx = n > 0 ? read_context(t, pem, (size_t)n, &cert) : NULL;
    explicit_bzero(pem, sizeof(pem));
    if (ctx)
        set_default(t, ctx);
    else
        log_warn("the certificate's files do not fit each other; the former are used on");
}

void tls_certificate(struct tls *t, const struct broker_cert *msg, int fd)
{
    char pem[PEM_SIZE], label[BROKER_HOST_SIZE];
    ssize_t n = read_pem(fd, pem);
    X509 *cert = NULL;
    SSL_CTX *ctx = NULL;
    (void)snprintf(label, sizeof(label), "%.*s", BROKER_HOST_SIZE - 1, msg->label);
    if (n > 0 && msg->what == BROKER_CERT_BELOW)
        set_below(t, pem, (size_t)n);
    else if (n > 0)
        ctx = read_context(t, pem, (size_t)n, &cert);
    explicit_bzero(pem, sizeof(pem));
    if (n > 0 && !ctx && msg->what != BROKER_CERT_BELOW)
        log_warn("a certificate that warrend gave cannot be used label=%s", label);
    else if (msg->what == BROKER_CERT_NAMED)
        set_named(t, label, ctx, cert);
    else if (msg->what == BROKER_CERT_DEFAULT && ctx && !t->by_files)
        set_default(t, ctx);
    else
        SSL_CTX_free(ctx);
}
