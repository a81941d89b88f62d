/* cookie - the two headers of cookies, as far as a proxy must know them.
 *
 * Cookies of Warren's own (warren_*) are for Warren alone, in both directions, and what a server inside
 * sets stays with the host that it answers under: a preview must not set cookies for its neighbours.
 * Pure functions. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "net/head.h"

/* The value of the first cookie of that name in a Cookie header's value; n is 0: none. */
struct text cookie_find(struct text cookies, const char *name);
/* The same header's value without Warren's own; nothing is appended if none is left. */
int cookie_strip(struct text cookies, struct buf *out);
/* A Set-Cookie header's value as it may pass: without a Domain. False: it may not pass at all. */
bool cookie_may_set(struct text set_cookie);
int cookie_confine(struct text set_cookie, struct buf *out);
