/* A server's frames: what comes out is frames again, and none of them has the secret. */
#include <stdlib.h>
#include <string.h>

#include "net/redact_frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Made once: that takes longer than reading any input. */
static struct redact_words *secret(void)
{
    static struct redact_words *w;
    if (!w && (!(w = redact_words_new()) || redact_words_add(w, "secret", 6) < 0))
        abort();
    return w;
}

static void check_text(const char *p, size_t n)
{
    if (n && memmem(p, n, "secret", 6))
        abort();
}

/* Each message and each control frame, without their heads: a length may be a letter of the secret. */
static void check_frames(const struct buf *out)
{
    struct buf message = BUF_INIT(1 << 20);
    const unsigned char *p = (const unsigned char *)out->data;
    size_t at = 0;
    while (at < out->len) {
        size_t head = 2, n = out->len - at < 2 ? 127 : p[at + 1],
               bytes = n < 126    ? 0
                       : n == 126 ? 2
                                  : 8;
        head += bytes;
        if (n > 127 || out->len - at < head)
            abort();
        if (bytes)
            n = 0;
        for (size_t i = 0; i < bytes; i++)
            n = n << 8 | p[at + 2 + i];
        if (n > out->len - at - head)
            abort();
        const char *payload = out->data + at + head;
        if (p[at] & 8) {
            check_text(payload, n);
        } else {
            if (p[at] & 15)
                buf_clear(&message);
            (void)buf_append(&message, payload, n);
            check_text(message.data, message.len);
        }
        at += head + n;
    }
    buf_done(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct buf out = BUF_INIT(1 << 20);
    struct redact_frames f = { 0 };
    struct redact b;
    size_t piece = n ? 1 + p[0] % 16 : 1;
    if (redact_init(&b, secret()) < 0)
        abort();
    int r = 0;
    for (size_t at = 1; at < n && r >= 0; at += piece)
        r = redact_frames_take(&f, &b, (const char *)p + at, n - at < piece ? n - at : piece, &out);
    check_frames(&out);
    redact_done(&b);
    buf_done(&out);
    return 0;
}
