/* Secrets in a stream: as many bytes come out as went in, the same however they were cut, and no
 * secret among them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "net/blot.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static bool same_text(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (tolower((unsigned char)a[i]) != tolower((unsigned char)b[i]))
            return false;
    return true;
}

static void feed(struct blot_words *w, const char *p, size_t n, size_t piece, struct buf *out)
{
    struct blot b;
    if (blot_init(&b, w) < 0)
        abort();
    for (size_t at = 0; at < n; at += piece)
        if (blot_take(&b, p + at, n - at < piece ? n - at : piece, out) < 0)
            abort();
    if (blot_end(&b, out) < 0)
        abort();
    blot_done(&b);
}

/* Whether the secret shows in another case or backwards, if it is long enough to be looked for
 * in these forms. */
static bool shows_loosely(const struct buf *out, const char *secret, size_t len)
{
    char back[32];
    for (size_t i = 0; i < len; i++) {
        if (memchr(" \t\r\n\0:-=,", secret[i], 9))
            return false;
        back[len - 1 - i] = secret[i];
    }
    for (size_t at = 0; len >= 6 && at + len <= out->len; at++)
        if (same_text(out->data + at, secret, len) || same_text(out->data + at, back, len))
            return true;
    return false;
}

/* The first bytes say how it is cut and how long the secret is; it stands there too. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct buf whole = BUF_INIT(1 << 20), cut = BUF_INIT(1 << 20);
    size_t piece = n > 2 ? 1 + p[0] % 32 : 1, len = n > 2 ? 1 + p[1] % 24 : 1;
    if (n < 2 + len || n > 16384)
        return 0;
    const char *secret = (const char *)p + 2, *rest = secret + len;
    struct blot_words *w = blot_words_new();
    if (!w || blot_words_add(w, secret, len) < 0 || blot_words_add(w, "pa55", 4) < 0)
        abort();
    n -= 2 + len;
    feed(w, rest, n, n ? n : 1, &whole);
    feed(w, rest, n, piece, &cut);
    if (whole.len != n || cut.len != n || (n && memcmp(whole.data, cut.data, n) != 0))
        abort();
    /* Stars may become a part of one that has stars. */
    if (n && !memchr(secret, '*', len) &&
        (memmem(whole.data, n, secret, len) || shows_loosely(&whole, secret, len)))
        abort();
    blot_words_unref(w);
    buf_done(&whole);
    buf_done(&cut);
    return 0;
}
