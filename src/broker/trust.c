#include "broker/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "base/buf.h"
#include "base/log.h"

#define LOG_MODULE "trust"
#define BYTES_MAX (8u * 1024 * 1024) /* the usual list is a quarter of a MiB */

struct trust {
    struct buf pem;
    SSL_CTX *ctx; /* NULL until it is needed */
};

/* Where distributions keep them in one file. */
static const char *const bundles[] = { "/etc/ssl/certs/ca-certificates.crt",
                                       "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
                                       "/etc/ssl/cert.pem" };

static int read_file(const char *path, struct buf *out)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    for (;;) {
        char piece[64 * 1024];
        ssize_t n = read(fd, piece, sizeof(piece));
        if (n < 0)
            return -errno;
        if (n == 0)
            return buf_puts(out, "\n");
        int r = buf_append(out, piece, (size_t)n);
        if (r < 0)
            return r;
    }
}

static int add_all(const struct buf *pem, X509_STORE *store)
{
    BIO *bio = BIO_new_mem_buf(pem->data, (int)pem->len);
    int n = 0;
    for (X509 *x; bio && (x = PEM_read_bio_X509(bio, NULL, NULL, NULL)); X509_free(x))
        n += X509_STORE_add_cert(store, x);
    BIO_free(bio);
    ERR_clear_error(); /* the end is one too */
    return n;
}

/* Text that holds no certificate at all is a mistake; better told at start than at first need. */
static int check_extra(const char *path, struct buf *out, struct err *err)
{
    _cleanup_(buf_done) struct buf own = BUF_INIT(BYTES_MAX);
    int r = read_file(path, &own);
    X509_STORE *store = r < 0 ? NULL : X509_STORE_new();
    if (store && add_all(&own, store) == 0)
        r = -EBADMSG;
    X509_STORE_free(store);
    if (r == 0)
        r = buf_append(out, own.data, own.len);
    return r < 0 ? err_set(err, -r, "cannot read certificates from '%s'", path) : 0;
}

int trust_new(const char *extra, struct trust **ret_trust, struct err *err)
{
    _cleanup_(trust_freep) struct trust *t = calloc(1, sizeof(*t));
    if (!t)
        return err_set(err, ENOMEM, "out of memory");
    t->pem = (struct buf)BUF_INIT(BYTES_MAX);
    for (size_t i = 0; t->pem.len == 0 && i < ARRAY_LEN(bundles); i++)
        (void)read_file(bundles[i], &t->pem);
    if (t->pem.len == 0)
        log_warn("this system has no list of certificate authorities (ca-certificates)");
    int r = extra && *extra ? check_extra(extra, &t->pem, err) : 0;
    if (r < 0)
        return r;
    *ret_trust = take_ptr(t);
    return 0;
}

void trust_free(struct trust *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    buf_done(&t->pem);
    free(t);
}

SSL_CTX *trust_context(struct trust *t)
{
    if (!t || t->ctx)
        return t ? t->ctx : NULL;
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    if (t->pem.len)
        (void)add_all(&t->pem, SSL_CTX_get_cert_store(ctx));
    buf_done(&t->pem);
    t->ctx = ctx;
    return ctx;
}

int trust_expect(SSL *ssl, const char *host, const char *address)
{
    if (!*host)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), address) == 1 ? 0 : -EINVAL;
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1 ? 0 : -EINVAL;
}
