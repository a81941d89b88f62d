/* gzip - an answer made smaller, for a client that said it can read that. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define GZIP_MIN 1024 /* below this a packet is saved by nothing */

/* What packing n bytes asks room for, however few it fills: zlib's own bound, and some. */
#define GZIP_ROOM(n_) ((n_) + (n_) / 1024 + 128)

/* Whether an Accept-Encoding header (NULL: none) lets us send gzip. */
bool gzip_accepted(const char *accept_encoding);
/* Appends the compressed bytes, to a buffer with GZIP_ROOM(n); -errno, and out is then as it was. */
int gzip_pack(const char *p, size_t n, struct buf *out);
