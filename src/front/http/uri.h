/* uri - a request target taken apart: path segments and query parameters.
 *
 * Each part is percent-decoded once, after the splitting, so that an encoded '/' or '&' is
 * data. Strict: a bad escape, a NUL, a control character or text that is not UTF-8 is refused
 * rather than guessed at. Knows nothing of routes or of HTTP beyond this line. */
#pragma once
#include <stddef.h>

#include "base/err.h"

#define URI_MAX 8192 /* longer than any cursor, name and filter together */
#define URI_SEGMENTS_MAX 16
#define URI_PARAMS_MAX 64

struct uri_param {
    const char *name, *value;
};

struct uri {
    char *text; /* owns what the others point into */
    const char *segments[URI_SEGMENTS_MAX];
    size_t nsegments;
    struct uri_param params[URI_PARAMS_MAX];
    size_t nparams;
};

/* "/a/b?c=d" as it stood on the request line. On failure nothing is left to free. */
int uri_parse(const char *target, size_t n, struct uri *ret_uri, struct err *err);
void uri_done(struct uri *uri);
/* The first value under that name, or NULL. */
const char *uri_param(const struct uri *uri, const char *name);
