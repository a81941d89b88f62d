/* leaf - certificates for names, made as they are asked for by a sandbox's own CA.
 *
 * All leaves of one CA share a key that never leaves memory; the last names asked for are kept. Making one
 * costs a signature, no waiting. Does not know which names may be asked for. */
#pragma once
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

#define LEAVES_MAX 32 /* names kept; others are made again */

struct leaves;
struct ssl_ctx_st;
struct ssl_st;

/* pem: the CA's certificate and key. */
int leaves_new(const char *pem, size_t n, struct leaves **ret_leaves, struct err *err);
void leaves_free(struct leaves *l);
DEFINE_FREEP(struct leaves *, leaves_free)

/* The server's side of a handshake for this host, which is canonical; HTTP/1.1 is all it speaks. NULL: it cannot be
 * made. The caller's; the leaves may go before it. */
struct ssl_st *leaves_accept(struct leaves *l, const char *host);
/* What such handshakes are made with, for a connection that began with another; the leaves'. */
struct ssl_ctx_st *leaves_context(struct leaves *l, const char *host);
