/* Requests on a connection: the same comes out however the bytes were cut, never more than went in, and
 * nothing for a host that was refused. */
#include <stdlib.h>
#include <string.h>

#include "net/requests.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static bool allow(void *arg, const char host[HOST_SIZE])
{
    return strcmp(host, "evil.test") != 0;
}

static int feed(const char *p, size_t n, size_t piece, struct buf *out)
{
    struct requests q = REQUESTS_INIT;
    int r = 0;
    for (size_t at = 0; r == 0 && at < n; at += piece)
        r = requests_take(&q, p + at, n - at < piece ? n - at : piece, allow, NULL, out);
    requests_done(&q);
    return r;
}

/* What a server says to one who asked for a WebSocket: more of it never changes what was said of less. */
static void answer(const char *p, size_t n, size_t piece)
{
    static const char ask[] = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\n"
                              "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    int first = 0;
    for (int whole = 0; whole < 2; whole++) {
        struct requests q = REQUESTS_INIT;
        struct buf out = BUF_INIT(1 << 20);
        int r = requests_take(&q, ask, sizeof(ask) - 1, allow, NULL, &out);
        if (r < 0 || !q.asking)
            abort();
        for (size_t at = whole ? n : piece; r == 0; at += piece) {
            r = requests_answered(&q, p, at < n ? at : n, allow, NULL, &out);
            if (at >= n)
                break;
        }
        if (whole && r != first)
            abort();
        first = r;
        requests_done(&q);
        buf_done(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct buf whole = BUF_INIT(1 << 20), cut = BUF_INIT(1 << 20);
    size_t piece = n ? 1 + p[0] % 64 : 1;
    if (n < 2 || n > 16384)
        return 0;
    p++;
    n--;
    answer((const char *)p, n, piece);
    int a = feed((const char *)p, n, n, &whole), b = feed((const char *)p, n, piece, &cut);
    /* A broken chunk may be seen before or after the bytes before it went on. */
    if (whole.len > n || cut.len > n || (whole.len && memcmp(whole.data, p, whole.len) != 0) ||
        (cut.len && memcmp(cut.data, p, cut.len) != 0))
        abort();
    if (a == 0 && (b != 0 || whole.len != cut.len))
        abort();
    buf_done(&whole);
    buf_done(&cut);
    return 0;
}
