/* trust - whom we believe when we dial out under TLS: the system's authorities, and the operator's.
 *
 * Their certificates are read as bytes while the broker still sees the file system. What they say is
 * worked out at the first need, once: it takes some 40 ms, which most brokers never spend. */
#pragma once
#include "base/cleanup.h"
#include "base/err.h"

struct ssl_ctx_st;
struct ssl_st;
struct trust;

/* extra: a PEM file, or NULL. A system without authorities is only warned of: then nobody is
 * believed. */
int trust_new(const char *extra, struct trust **ret_trust, struct err *err);
void trust_free(struct trust *t);
DEFINE_FREEP(struct trust *, trust_free)

/* For a client: it verifies, and speaks TLS 1.2 at least. NULL: no memory, or t is NULL. */
struct ssl_ctx_st *trust_context(struct trust *t);
/* Whose certificate it must be: a host's, or an address's if host is "". -EINVAL. */
int trust_expect(struct ssl_st *ssl, const char *host, const char *address);
