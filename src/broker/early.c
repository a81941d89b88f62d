#include "broker/early.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

struct early {
    int fd;
    size_t at, n;
    char bytes[];
};

static int on_read(BIO *bio, char *out, int n)
{
    struct early *e = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (n <= 0)
        return 0;
    if (e->at < e->n) {
        size_t some = e->n - e->at < (size_t)n ? e->n - e->at : (size_t)n;
        memcpy(out, e->bytes + e->at, some);
        e->at += some;
        return (int)some;
    }
    ssize_t r = recv(e->fd, out, (size_t)n, MSG_DONTWAIT);
    if (r < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    return (int)r;
}

static int on_write(BIO *bio, const char *p, int n)
{
    struct early *e = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t r = send(e->fd, p, n < 0 ? 0 : (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (r < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)r;
}

static long on_ctrl(BIO *bio, int what, long number, void *p)
{
    return what == BIO_CTRL_FLUSH;
}

static int on_destroy(BIO *bio)
{
    free(BIO_get_data(bio));
    return 1;
}

static BIO_METHOD *method(void)
{
    static BIO_METHOD *made;
    if (made)
        return made;
    made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "early");
    if (!made)
        return NULL;
    (void)BIO_meth_set_read(made, on_read);
    (void)BIO_meth_set_write(made, on_write);
    (void)BIO_meth_set_ctrl(made, on_ctrl);
    (void)BIO_meth_set_destroy(made, on_destroy);
    return made;
}

int early_set(struct ssl_st *ssl, int fd, const void *p, size_t n)
{
    struct early *e = malloc(sizeof(*e) + n);
    BIO *bio = e && method() ? BIO_new(method()) : NULL;
    if (!bio) {
        free(e);
        return -ENOMEM;
    }
    *e = (struct early){ .fd = fd, .n = n };
    if (n)
        memcpy(e->bytes, p, n);
    BIO_set_data(bio, e);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    return 0;
}
