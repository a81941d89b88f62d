/* cors - which pages of other origins may read our answers in a browser.
 *
 * A key travels in a header that a page has to know; there are no cookies and nothing else that a
 * browser would add by itself, so any origin may ask by default. */
#pragma once
#include <stdbool.h>

#include "base/err.h"

#define CORS_ORIGIN_MAX 120

/* What the option may be: "*", "none", or origins with commas between. -EINVAL with a sentence. */
int cors_check(const char *origins, struct err *err);
/* What Access-Control-Allow-Origin shall say to this Origin: "*", the origin itself, or NULL. */
const char *cors_allows(const char *origins, const char *origin);

extern const char cors_exposed[]; /* the answers' headers that a page may read */
extern const char cors_headers[]; /* the requests' headers that a page may send */
/* The same for a dialect, whose clients send many of their own. */
extern const char cors_any_header[];
