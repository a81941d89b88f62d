#include "broker/answer_redact.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CLEAN_MAX (1024 * 1024)

/* ---- heads ---- */

/* Each text by itself: what is found must not reach over a line's end. */
static int put_clean(struct buf *out, struct text t, struct redact_words *words)
{
    size_t at = out->len;
    int r = buf_append(out, t.p, t.n);
    return r < 0 ? r : redact_whole(words, out->data + at, t.n);
}

static bool stays_behind(const struct head *h, const struct head_field *f,
                         const struct answer_redact_head *how)
{
    if (head_is_hop(h, f->name) || text_is(f->name, "Alt-Svc") ||
        (how->hides && text_is(f->name, "Sec-WebSocket-Extensions")))
        return true;
    return how->inner && text_is(f->name, "Strict-Transport-Security");
}

static int put_field(const struct head_field *f, const struct answer_redact_head *how,
                     struct buf *out)
{
    /* A length was read as a number, and is no place for a secret. */
    struct redact_words *words = text_is(f->name, "Content-Length") ? NULL : how->words;
    int r = put_clean(out, f->name, words);
    if (r >= 0)
        r = buf_append(out, ": ", 2);
    if (r >= 0)
        r = put_clean(out, f->value, words);
    return r < 0 ? r : buf_append(out, "\r\n", 2);
}

int answer_redact_head(const struct head *h, const struct answer_redact_head *how, struct buf *out)
{
    bool chunked = how->chunks && (h->body == BODY_CHUNKED || h->body == BODY_UNTIL_END);
    int r = buf_printf(out, "HTTP/1.1 %03u ", h->status);
    if (r >= 0)
        r = put_clean(out, h->reason, how->words);
    if (r >= 0)
        r = buf_append(out, "\r\n", 2);
    for (size_t i = 0; i < h->nfields && r >= 0; i++)
        if (!stays_behind(h, &h->fields[i], how))
            r = put_field(&h->fields[i], how, out);
    if (r < 0)
        return r;
    if (h->status == 101)
        return buf_puts(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    if (h->status < 200)
        return buf_append(out, "\r\n", 2);
    return buf_printf(out, "%s%s\r\n", chunked ? "Transfer-Encoding: chunked\r\n" : "",
                      how->keep ? "" : "Connection: close\r\n");
}

/* ---- bodies ---- */

int answer_redact_start(struct answer_redact *w, enum body_kind kind, uint64_t length,
                        struct redact_words *words, bool chunks)
{
    answer_redact_done(w);
    *w = (struct answer_redact){ .over = kind == BODY_EMPTY,
                                 .chunks =
                                     chunks && (kind == BODY_CHUNKED || kind == BODY_UNTIL_END) };
    body_start(&w->body, kind, length);
    return redact_init(&w->redact, words);
}

int answer_redact_start_socket(struct answer_redact *w, struct redact_words *words, bool frames)
{
    int r = answer_redact_start(w, BODY_UNTIL_END, 0, words, false);
    if (r >= 0 && frames)
        w->frames = calloc(1, sizeof(*w->frames));
    return r < 0 ? r : frames && !w->frames ? -ENOMEM : 0;
}

void answer_redact_done(struct answer_redact *w)
{
    redact_done(&w->redact);
    free(w->frames);
    w->frames = NULL;
}

static int put_chunk(struct answer_redact *w, const struct buf *clean, struct buf *out)
{
    int r = 0;
    if (clean->len && w->chunks)
        r = buf_printf(out, "%zx\r\n", clean->len);
    if (r >= 0 && clean->len)
        r = buf_append(out, clean->data, clean->len);
    if (r >= 0 && clean->len && w->chunks)
        r = buf_append(out, "\r\n", 2);
    return r < 0 || !w->over || !w->chunks ? r : buf_puts(out, "0\r\n\r\n");
}

/* What of these bytes is the body's goes behind what is pending. */
static int take_clean(struct answer_redact *w, const char *p, size_t n, size_t *ret_used,
                      struct buf *pending)
{
    _cleanup_(buf_done) struct buf clean = BUF_INIT(CLEAN_MAX);
    size_t at = 0;
    int r = 0;
    if (w->frames) {
        *ret_used = n;
        w->passed += n;
        return redact_frames_take(w->frames, &w->redact, p, n, pending);
    }
    while (at < n && !w->over && r >= 0) {
        struct text data;
        size_t used = 0;
        r = body_read(&w->body, p + at, n - at, &used, &data.p, &data.n);
        at += used;
        w->over = r > 0;
        if (r >= 0 && data.n && w->kept)
            r = buf_append(w->kept, data.p, data.n);
        else if (r >= 0 && data.n)
            r = redact_take(&w->redact, data.p, data.n, &clean);
    }
    *ret_used = at;
    w->passed += at;
    if (r >= 0 && w->over)
        r = redact_end(&w->redact, &clean);
    return r < 0 ? r : put_chunk(w, &clean, pending);
}

static int take(void *arg, const struct flow_ends *ends, const char *p, size_t n, size_t *ret_used)
{
    return take_clean(arg, p, n, ret_used, ends->pending) < 0 ? -EBADMSG : 0;
}

static int take_end(void *arg, const struct flow_ends *ends)
{
    struct answer_redact *w = arg;
    size_t none = 0;
    if (w->body.kind != BODY_UNTIL_END)
        return -ECONNRESET;
    w->over = true;
    return take_clean(w, "", 0, &none, ends->pending);
}

enum flow_state answer_redact_run(struct answer_redact *w, struct sock *from, struct buf *early,
                                  struct sock *to, struct buf *pending)
{
    static const struct flow_ops ops = { take, take_end };
    const struct flow_ends ends = { from, early, to, pending };
    return flow_pump(&ends, &ops, w, &w->over, w->most);
}
