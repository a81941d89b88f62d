/* A proxy's answers: however they are cut, they mean the same, no more is taken than is there, and what
 * we say is bounded. And its text: what is read can be shown, and is then read as the same. */
#include <stdlib.h>
#include <string.h>

#include "net/hop.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static int feed(const struct proxy *up, const char *p, size_t n, size_t piece, size_t *ret_used)
{
    static const struct address to = { 32, { 198, 51, 100, 7 } };
    struct hop h;
    int r = 0;
    if (hop_init(&h, up, &to, 443, "") < 0)
        abort();
    for (*ret_used = 0; r == 0 && *ret_used < n;) {
        size_t used, left = n - *ret_used, give = left < piece ? left : piece;
        r = hop_take(&h, p + *ret_used, give, &used);
        if (used > give || (r == 0 && used == 0))
            abort();
        *ret_used += used;
    }
    hop_done(&h);
    return r;
}

static void read_text(const char *p, size_t n)
{
    struct proxy up, again;
    struct buf shown = BUF_INIT(4096);
    if (proxy_parse(p, n, &up, NULL) == 0 &&
        (proxy_show(&up, &shown) < 0 || proxy_parse(shown.data, shown.len, &again, NULL) < 0 ||
         up.port != again.port || strcmp(up.host, again.host) != 0 ||
         strcmp(up.user, again.user) != 0))
        abort();
    buf_done(&shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const char *const urls[] = { "http://u:v@p:1", "socks5://p:1", "socks5://u:v@p:1" };
    struct proxy up;
    size_t a_used, b_used;
    if (n < 2 || n > 16384)
        return 0;
    const char *url = urls[p[0] % 3];
    size_t piece = 1 + p[1] % 32;
    const char *text = (const char *)p + 2;
    n -= 2;
    read_text(text, n);
    if (proxy_parse(url, strlen(url), &up, NULL) < 0)
        abort();
    int a = feed(&up, text, n, n ? n : 1, &a_used), b = feed(&up, text, n, piece, &b_used);
    if (a != b || (a >= 0 && a_used != b_used))
        abort();
    return 0;
}
