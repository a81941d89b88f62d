/* head_fuzz - heads of requests and answers, and the chunks behind them. What is found must lie in
 * the input, and a request that was taken must read the same when it is written anew. */
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "net/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void inside(struct text t, const char *p, size_t n)
{
    if (t.n && (t.p < p || t.p + t.n > p + n))
        __builtin_trap();
}

static void same_again(const struct head *h)
{
    static struct head again;
    _cleanup_(buf_done) struct buf b = BUF_INIT(4 * HEAD_MAX);
    int r = buf_append(&b, h->method.p, h->method.n);
    r = r < 0 ? r : buf_puts(&b, " ");
    r = r < 0 ? r : buf_append(&b, h->target.p, h->target.n);
    r = r < 0 ? r : buf_printf(&b, " HTTP/1.%u\r\n", h->minor);
    for (size_t i = 0; i < h->nfields && r >= 0; i++) {
        r = buf_append(&b, h->fields[i].name.p, h->fields[i].name.n);
        r = r < 0 ? r : buf_puts(&b, ": ");
        r = r < 0 ? r : buf_append(&b, h->fields[i].value.p, h->fields[i].value.n);
        r = r < 0 ? r : buf_puts(&b, "\r\n");
    }
    r = r < 0 ? r : buf_puts(&b, "\r\n");
    if (r < 0)
        return;
    if (head_end(b.data, b.len, 0) != b.len || head_request(b.data, b.len, &again) < 0 ||
        again.body != h->body || again.length != h->length || again.nfields != h->nfields ||
        again.host.n != h->host.n)
        __builtin_trap();
}

static void read_body(const struct head *h, const char *p, size_t n)
{
    struct body whole, bytes;
    size_t used = 0, one = 0, total = 0;
    body_start(&whole, h->body, h->length);
    body_start(&bytes, h->body, h->length);
    int r = body_take(&whole, p, n, &used), each = h->body == BODY_EMPTY;
    if (used > n)
        __builtin_trap();
    for (size_t i = 0; i < n && each == 0; i++) {
        each = body_take(&bytes, p + i, 1, &one);
        total += one;
    }
    if (n > 0 && (each != r || (r >= 0 && total != used)))
        __builtin_trap(); /* however the bytes come */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct head h;
    if (size < 1 || size > HEAD_MAX)
        return 0;
    const char *p = (const char *)data + 1;
    size_t n = head_end(p, size - 1, 0);
    if (n == 0)
        return 0;
    int r = data[0] & 1 ? head_request(p, n, &h) : head_answer(p, n, data[0] & 2, &h);
    if (r < 0)
        return 0;
    inside(h.method, p, n);
    inside(h.target, p, n);
    inside(h.host, p, n);
    inside(h.reason, p, n);
    for (size_t i = 0; i < h.nfields; i++) {
        inside(h.fields[i].name, p, n);
        inside(h.fields[i].value, p, n);
        (void)head_is_hop(&h, h.fields[i].name);
    }
    if (data[0] & 1)
        same_again(&h);
    read_body(&h, p + n, size - 1 - n);
    return 0;
}
