/* tls - the listener for clients that come encrypted, and which certificate each of them is shown.
 *
 * By the name that a client asks for: one that warrend gave us for that name, one made on the spot
 * by the local authority for a name below a domain of one label (no client takes "*.localhost"), else
 * the default. That is read from the operator's files before the broker gives its rights up, and comes again
 * when they change, or comes from warrend; no connection is taken before there is one. HTTP/1.1 is all that is offered. */
#pragma once
#include "base/err.h"
#include "base/loop.h"

struct broker_cert;
struct ssl_st;
struct tls;

/* Both are PEM files, the certificate's has the chain behind it; or NULL. Keeps domain. */
int tls_new(const char *cert_path, const char *key_path, const char *domain, struct tls **ret_tls,
            struct err *err);
void tls_free(struct tls *tls);
DEFINE_FREEP(struct tls *, tls_free)

/* Takes connections from `fd`, which is taken too; each is given to fn, which takes both. */
int tls_listen(struct tls *tls, struct loop *loop, int fd,
               void (*fn)(void *arg, int fd, struct ssl_st *ssl), void *arg, struct err *err);
/* The operator's files anew (certfiles.h); fd: both of them in one, taken. What does not fit changes nothing. */
void tls_files(struct tls *tls, int fd);
/* What warrend said of a certificate; fd: -1, or a file with it and its key, taken. */
void tls_certificate(struct tls *tls, const struct broker_cert *msg, int fd);
