#include "front/rpc/envelope.h"

#include <errno.h>
#include <string.h>

static size_t length_of(const unsigned char head[ENVELOPE_SIZE])
{
    return (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
}

/* As much of the head as there is: how many bytes of p that took. */
static int take_head(struct envelopes *e, const char *p, size_t n, size_t *ret_took)
{
    size_t took = ENVELOPE_SIZE - e->n_head < n ? ENVELOPE_SIZE - e->n_head : n;
    memcpy(e->head + e->n_head, p, took);
    e->n_head += took;
    *ret_took = took;
    if (e->n_head < ENVELOPE_SIZE)
        return 0;
    e->left = length_of(e->head);
    e->message.len = 0;
    return e->left > ENVELOPE_MAX - 1 ? -EMSGSIZE : 0;
}

int envelopes_feed(struct envelopes *e, const char *p, size_t n, envelope_fn fn, void *arg)
{
    while (n > 0) {
        size_t took;
        if (e->n_head < ENVELOPE_SIZE) {
            int r = take_head(e, p, n, &took);
            if (r < 0)
                return r;
        } else {
            took = e->left < n ? e->left : n;
            int r = buf_append(&e->message, p, took);
            if (r < 0)
                return r;
            e->left -= took;
        }
        p += took;
        n -= took;
        if (e->n_head < ENVELOPE_SIZE || e->left > 0)
            continue;
        e->n_head = 0;
        int r = fn(arg, e->head[0], e->message.len ? e->message.data : "", e->message.len);
        if (r < 0)
            return r;
    }
    return 0;
}

int envelopes_end(const struct envelopes *e)
{
    return e->n_head > 0 ? -EBADMSG : 0;
}

void envelopes_done(struct envelopes *e)
{
    buf_done(&e->message);
}
