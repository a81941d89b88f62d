#include "broker/entrance.h"

#include <inttypes.h>

#include "broker/proof.h"

/* It must lead to this host: to a browser what begins with two slashes, of either kind, is another. */
static int put_location(struct text target, struct buf *out)
{
    bool other = target.n > 1 && (target.p[1] == '/' || target.p[1] == '\\');
    int r = buf_puts(out, other ? "Location: /." : "Location: ");
    if (r >= 0)
        r = proof_cut(target, out);
    return r < 0 ? r : buf_append(out, "\r\n", 2);
}

int entrance_write(const struct head *h, const char *token, int64_t life_s, bool tls, bool keep,
                   struct buf *out)
{
    int r = buf_puts(out, "HTTP/1.1 303 See Other\r\n");
    if (r >= 0)
        r = put_location(h->target, out);
    if (r >= 0)
        r = buf_printf(out,
                       "Set-Cookie: %s=%s; Path=/; Max-Age=%" PRId64
                       "; HttpOnly; SameSite=Lax%s\r\n"
                       "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
                       "Content-Length: 0\r\n%s\r\n",
                       proof_cookie(tls), token, life_s, tls ? "; Secure" : "",
                       keep ? "" : "Connection: close\r\n");
    return r;
}
