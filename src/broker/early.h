/* early - a socket of which some bytes were read before, as OpenSSL reads it.
 *
 * Those bytes come first, then the socket's own; nothing is read ahead, so that what waits is
 * always where the loop sees it. */
#pragma once
#include <stddef.h>

struct ssl_st;

/* Under ssl are from now on these bytes, which are copied, and fd, which stays the caller's. -ENOMEM. */
int early_set(struct ssl_st *ssl, int fd, const void *p, size_t n);
