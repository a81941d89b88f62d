/* entrance - the one redirect that turns a token in a URL into a cookie.
 *
 * The cookie is for this host alone, out of scripts' reach, and lives as long as its token; the URL
 * that the client goes on to, in its history too, has no token any more. A pure function. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/head.h"

int entrance_write(const struct head *h, const char *token, int64_t life_s, bool tls, bool keep,
                   struct buf *out);
