/* base64 - bytes as text of the standard alphabet, and back.
 *
 * Pure. Reading takes text with or without its padding, and nothing else: no spaces, no other
 * alphabet. */
#pragma once
#include <stddef.h>

#include "base/buf.h"

int base64_encode(const void *p, size_t n, struct buf *out); /* appends, padded */
int base64_decode(const char *p, size_t n, struct buf *out); /* appends; -EPROTO */
