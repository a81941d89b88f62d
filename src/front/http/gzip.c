#include "front/http/gzip.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#define WINDOW_GZIP (15 + 16) /* the largest window, in gzip's own wrapping */
#define MEMORY_LEVEL 8
#define FAST_FROM (256 * 1024) /* larger ones are packed for speed */

/* "q=0" and its like; a coding without q has 1. */
static bool refused(const char *p, const char *end)
{
    const char *q = memmem(p, (size_t)(end - p), "q=", 2);
    if (!q)
        return false;
    for (q += 2; q < end && (*q == '0' || *q == '.'); q++)
        ;
    return q == end || *q < '1' || *q > '9';
}

bool gzip_accepted(const char *accept_encoding)
{
    bool any = false;
    for (const char *p = accept_encoding; p && *p;) {
        const char *end = p + strcspn(p, ",");
        while (*p == ' ' || *p == '\t')
            p++;
        size_t n = strcspn(p, " \t;,");
        if ((n == 4 && strncasecmp(p, "gzip", 4) == 0) ||
            (n == 6 && strncasecmp(p, "x-gzip", 6) == 0))
            return !refused(p, end);
        if (n == 1 && *p == '*')
            any = !refused(p, end);
        p = *end ? end + 1 : end;
    }
    return any;
}

int gzip_pack(const char *p, size_t n, struct buf *out)
{
    z_stream z = { 0 };
    if (n > UINT32_MAX / 2)
        return -EFBIG;
    if (deflateInit2(&z, n < FAST_FROM ? Z_DEFAULT_COMPRESSION : Z_BEST_SPEED, Z_DEFLATED,
                     WINDOW_GZIP, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return -ENOMEM;
    size_t bound = deflateBound(&z, (uLong)n);
    int r = buf_reserve(out, bound);
    if (r >= 0) {
        z.next_in = (Bytef *)(uintptr_t)p;
        z.avail_in = (uInt)n;
        z.next_out = (Bytef *)(out->data + out->len);
        z.avail_out = (uInt)bound;
        r = deflate(&z, Z_FINISH) == Z_STREAM_END ? 0 : -EIO;
    }
    if (r >= 0)
        out->len += z.total_out;
    (void)deflateEnd(&z);
    return r;
}
