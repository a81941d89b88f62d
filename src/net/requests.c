#include "net/requests.h"

#include <errno.h>
#include <string.h>

#define WEBSOCKET_KEY_SIZE 24 /* 16 bytes in base64 */

#include "net/address.h"

void requests_done(struct requests *q)
{
    buf_done(&q->in);
}

/* What an address is written as in a URL. */
static bool literal(const char *p, size_t n)
{
    struct address a;
    bool v6 = n > 2 && p[0] == '[' && p[n - 1] == ']';
    return v6 ? memchr(p, ':', n) && address_parse(p + 1, n - 2, &a) == 0
              : address_parse(p, n, &a) == 0 && !memchr(p, ':', n);
}

/* A Host field's value, perhaps with a port, in canonical form; "" for an address, or for none where the
 * version lets it be missing. The target cannot name another: heads with a whole URL in them are refused. */
static int read_host(const char *p, size_t n, char out[HOST_SIZE])
{
    const char *from = n && p[0] == '[' ? memchr(p, ']', n) : p;
    const char *colon = n && from ? memchr(from, ':', n - (size_t)(from - p)) : NULL;
    if (colon) {
        for (const char *c = colon + 1; c < p + n; c++)
            if (*c < '0' || *c > '9')
                return -EBADMSG;
        n = (size_t)(colon - p);
    }
    if (n == 0 ? !colon : literal(p, n)) {
        out[0] = '\0';
        return 0;
    }
    return host_canon(p, n, out) < 0 ? -EBADMSG : 0;
}

/* A request that its server may answer with frames, in the one form that has a meaning. */
static bool asks_websocket(const struct head *h)
{
    const struct head_field *upgrade = head_find(h, "Upgrade");
    const struct head_field *version = head_find(h, "Sec-WebSocket-Version");
    const struct head_field *key = head_find(h, "Sec-WebSocket-Key");
    return h->upgrade && h->minor == 1 && h->body == BODY_EMPTY && text_is(h->method, "GET") &&
           upgrade && text_is(upgrade->value, "websocket") && version &&
           text_is(version->value, "13") && key && key->value.n == WEBSOCKET_KEY_SIZE;
}

/* The head at the start of `in`, n bytes of it. */
static int take_head(struct requests *q, size_t n,
                     bool (*allow)(void *arg, const char host[HOST_SIZE]), void *arg,
                     struct buf *out)
{
    struct head h;
    char host[HOST_SIZE];
    int r = head_request(q->in.data, n, &h);
    if (r == 0)
        r = read_host(h.host.p, h.host.n, host);
    if (r == 0 && text_is(h.method, "CONNECT"))
        r = -EBADMSG; /* what follows would be for anybody */
    if (r == 0 && !allow(arg, host))
        r = -EACCES;
    if (r == 0)
        r = buf_append(out, q->in.data, n);
    if (r < 0)
        return r;
    /* Only the first: of a later one nobody could say which answer is its. */
    q->asking = q->count == 0 && asks_websocket(&h);
    q->count++;
    q->seen = 0;
    q->in_body = h.body != BODY_EMPTY;
    body_start(&q->body, h.body, h.length);
    q->body.bare =
        true; /* servers differ on where an extension ends, and what a trailer is good for */
    buf_drop_front(&q->in, n);
    return 0;
}

/* As much of a body as is there: how many bytes, or below zero. */
static int pass_body(struct requests *q, const char *p, size_t n, size_t *ret_used, struct buf *out)
{
    int r = body_take(&q->body, p, n, ret_used);
    if (r < 0)
        return r;
    q->in_body = r == 0;
    return buf_append(out, p, *ret_used);
}

/* Goes on with what is in `in`, as long as there is something whole. */
static int run(struct requests *q, bool (*allow)(void *arg, const char host[HOST_SIZE]), void *arg,
               struct buf *out)
{
    while (q->in.len && !q->asking) {
        if (q->in_body) {
            size_t used = 0;
            int r = pass_body(q, q->in.data, q->in.len, &used, out);
            if (r < 0)
                return r;
            buf_drop_front(&q->in, used);
            continue;
        }
        size_t n = head_end(q->in.data, q->in.len, q->seen);
        if (n == 0) {
            q->seen = q->in.len;
            return 0;
        }
        int r = take_head(q, n, allow, arg, out);
        if (r < 0)
            return r;
    }
    return 0;
}

int requests_take(struct requests *q, const char *p, size_t n,
                  bool (*allow)(void *arg, const char host[HOST_SIZE]), void *arg, struct buf *out)
{
    int r = q->over ? -EBADMSG : 0;
    while (r == 0 && n) {
        size_t used = 0;
        if (q->in_body && q->in.len == 0) { /* the bulk of it is not copied twice */
            r = pass_body(q, p, n, &used, out);
        } else {
            used = q->in.max - q->in.len < n ? q->in.max - q->in.len : n;
            r = used ? buf_append(&q->in, p, used) : -EMSGSIZE;
            if (r == 0)
                r = run(q, allow, arg, out);
        }
        p += used;
        n -= used;
    }
    q->over = q->over || r < 0;
    return r;
}

static bool agrees(const struct head *h)
{
    const struct head_field *upgrade = head_find(h, "Upgrade");
    return h->upgrade && upgrade && text_is(upgrade->value, "websocket");
}

int requests_answered(struct requests *q, const char *p, size_t n,
                      bool (*allow)(void *arg, const char host[HOST_SIZE]), void *arg,
                      struct buf *out)
{
    struct head h;
    for (size_t at = 0;;) { /* others may come before the one that counts, as 100 does */
        size_t size = head_end(p + at, n - at, 0);
        if (size == 0)
            return n < HEAD_MAX ? 0 : -EMSGSIZE;
        if (head_answer(p + at, size, false, &h) < 0 || (h.status == 101 && !agrees(&h)))
            return -EBADMSG;
        at += size;
        if (h.status == 101 || h.status >= 200)
            break;
    }
    q->asking = false;
    int r = h.status == 101 ? buf_append(out, q->in.data, q->in.len) : run(q, allow, arg, out);
    if (r < 0)
        q->over = true;
    return r < 0 ? r : h.status == 101 ? 2 : 1;
}
