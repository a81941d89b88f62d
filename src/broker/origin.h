/* origin - whether a page of somebody else's makes a request in a visitor's name.
 *
 * All previews lie below one domain, which browsers take for one site: a page in one sandbox can have a
 * visitor's browser call another, by WebSocket or form, and the cookie of that one goes along. So what a
 * cookie would allow is for pages of the same name, or of another port of the same sandbox, alone. Who
 * brings a key or a token in another place is no browser that was talked into it. Pure. */
#pragma once
#include <stdbool.h>

#include "net/head.h"

/* By what Origin says; a request without one is made by no page, or changes nothing. */
bool origin_is_strange(const struct head *h, const char *domain, const char *sandbox);
