/* tls - the listener for clients that come encrypted, and its certificate.
 *
 * Certificate and key are read before the broker gives its rights up, so only root need be able to
 * read them; a broker that is started again reads them again. HTTP/1.1 is all that is offered. */
#pragma once
#include "base/err.h"
#include "base/loop.h"

struct ssl_st;
struct tls;

/* Both are PEM files; the certificate's has the chain behind it. */
int tls_new(const char *cert_path, const char *key_path, struct tls **ret_tls, struct err *err);
void tls_free(struct tls *tls);
DEFINE_FREEP(struct tls *, tls_free)

/* Takes connections from `fd`, which is taken too; each is given to fn, which takes both. */
int tls_listen(struct tls *tls, struct loop *loop, int fd,
               void (*fn)(void *arg, int fd, struct ssl_st *ssl), void *arg, struct err *err);
