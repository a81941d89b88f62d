#include "front/http/cors.h"

#include <errno.h>
#include <string.h>

const char cors_exposed[] =
    "Accept-Ranges, Content-Range, ETag, Idempotency-Replayed, Last-Modified, Location, "
    "RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, X-Next-Token, "
    "X-Request-Id, X-Total-Running";
const char cors_headers[] =
    "Accept, Authorization, Content-Encoding, Content-Type, Idempotency-Key, If-Match, "
    "If-None-Match, Range, X-API-Key, X-Request-Id, X-Warren-Team";
const char cors_any_header[] = "*, Authorization"; /* which the asterisk does not mean */

/* scheme://host[:port], nothing behind it. */
static bool is_origin(const char *p, size_t n)
{
    const char *at = memmem(p, n, "://", 3);
    if (!at || at == p || n >= CORS_ORIGIN_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)p[i] <= ' ' || p[i] == 0x7f || (p[i] == '/' && p + i > at + 2))
            return false;
    return at + 3 < p + n;
}

/* The next of the list at *at: its length, 0 at the end. */
static size_t next(const char **at)
{
    *at += strspn(*at, ", \t");
    return strcspn(*at, ", \t");
}

int cors_check(const char *origins, struct err *err)
{
    if (strcmp(origins, "*") == 0 || strcmp(origins, "none") == 0)
        return 0;
    size_t n, count = 0;
    for (const char *p = origins; (n = next(&p)) > 0; p += n, count++)
        if (!is_origin(p, n))
            return err_set(err, EINVAL,
                           "--cors-origins has '%.*s'; an origin is like https://example.com",
                           (int)(n < 80 ? n : 80), p);
    return count ? 0 : err_set(err, EINVAL, "--cors-origins must be *, none or a list of origins");
}

const char *cors_allows(const char *origins, const char *origin)
{
    if (!origins || !origin || strcmp(origins, "none") == 0)
        return NULL;
    if (strcmp(origins, "*") == 0)
        return "*";
    size_t n, len = strlen(origin);
    for (const char *p = origins; (n = next(&p)) > 0; p += n)
        if (n == len && memcmp(p, origin, n) == 0)
            return origin;
    return NULL;
}
