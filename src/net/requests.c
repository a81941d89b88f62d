#include "net/requests.h"

#include <errno.h>
#include <string.h>

void requests_done(struct requests *q)
{
    buf_done(&q->in);
}

/* A Host field's value, perhaps with a port, in canonical form. The target cannot name another: heads
 * with a whole URL in them are refused. */
static int read_host(const char *p, size_t n, char out[HOST_SIZE])
{
    const char *colon = n ? memchr(p, ':', n) : NULL;
    if (colon) {
        for (const char *c = colon + 1; c < p + n; c++)
            if (*c < '0' || *c > '9')
                return -EBADMSG;
        n = (size_t)(colon - p);
    }
    return host_canon(p, n, out) < 0 ? -EBADMSG : 0;
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
    q->count++;
    q->seen = 0;
    q->in_body = h.body != BODY_EMPTY;
    body_start(&q->body, h.body, h.length);
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
    while (q->in.len) {
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
