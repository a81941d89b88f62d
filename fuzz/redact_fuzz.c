/* Secrets in a stream: as many bytes come out as went in, the same however they were cut, and no
 * secret among them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "net/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static bool same_text(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (tolower((unsigned char)a[i]) != tolower((unsigned char)b[i]))
            return false;
    return true;
}

static void feed(struct redact_words *w, const char *p, size_t n, size_t piece, struct buf *out)
{
    struct redact b;
    if (redact_init(&b, w) < 0)
        abort();
    for (size_t at = 0; at < n; at += piece)
        if (redact_take(&b, p + at, n - at < piece ? n - at : piece, out) < 0)
            abort();
    if (redact_end(&b, out) < 0)
        abort();
    redact_done(&b);
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

/* ---- the secrets ---- */

#define OWN 32 /* one choice in so many is a secret that the input brings */

struct secret {
    char text[32];
    size_t len;
    struct redact_words *words;
};

static struct redact_words *words_of(const char *secret, size_t len)
{
    struct redact_words *w = redact_words_new();
    if (!w || redact_words_add(w, secret, len) < 0 || redact_words_add(w, "pa55", 4) < 0)
        abort();
    return w;
}

/* Shapes that matter: short, repeated, with separators, escapes, stars and bytes that are no text. Made once each: that
 * takes longer than reading any input. */
static const struct secret *known_secret(size_t i)
{
    static struct secret all[] = {
        { "s", 1, NULL },
        { "aa", 2, NULL },
        { "key", 3, NULL },
        { "aaaaaaaa", 8, NULL },
        { "abababab", 8, NULL },
        { "p-a-s-s", 7, NULL },
        { "a b\tc d", 7, NULL },
        { "%41%42", 6, NULL },
        { "&#x41;", 6, NULL },
        { "****", 4, NULL },
        { "a*a*a*", 6, NULL },
        { "\xff\xfe\x80zz\0q", 7, NULL },
        { "Sk-Live_0123456789", 18, NULL },
        { "c2VjcmV0LWtleQ==", 16, NULL },
        { "deadBEEFdeadBEEF", 16, NULL },
        { "\\u0041\\n\"", 9, NULL },
    };
    struct secret *s = &all[i % ARRAY_LEN(all)];
    if (!s->words)
        s->words = words_of(s->text, s->len);
    return s;
}

/* The rest of the input, where the byte 1 stands for the secret, and 2 for most of it. */
static void expand(const uint8_t *p, size_t n, const struct secret *s, struct buf *text)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] == 1 || p[i] == 2)
            (void)buf_append(text, s->text, s->len - (p[i] == 2));
        else
            (void)buf_append(text, &p[i], 1);
}

static void check(const struct secret *s, const struct buf *text, size_t piece)
{
    struct buf whole = BUF_INIT(1 << 20), cut = BUF_INIT(1 << 20);
    const size_t n = text->len;
    feed(s->words, text->data, n, n ? n : 1, &whole);
    feed(s->words, text->data, n, piece, &cut);
    if (whole.len != n || cut.len != n || (n && memcmp(whole.data, cut.data, n) != 0))
        abort();
    /* Stars may become a part of one that has stars. */
    if (n && !memchr(s->text, '*', s->len) &&
        (memmem(whole.data, n, s->text, s->len) || shows_loosely(&whole, s->text, s->len)))
        abort();
    buf_done(&whole);
    buf_done(&cut);
}

/* The first bytes say how it is cut and which secret it is. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct buf text = BUF_INIT(1 << 20);
    struct secret own = { .len = 0 };
    if (n < 2 || n > 16384)
        return 0;
    size_t piece = 1 + p[0] % 32, choice = p[1];
    p += 2;
    n -= 2;
    if (choice % OWN == OWN - 1) {
        own.len = 1 + choice / OWN * 3; /* up to 22 */
        if (n < own.len)
            return 0;
        memcpy(own.text, p, own.len);
        own.words = words_of(own.text, own.len);
        p += own.len;
        n -= own.len;
    }
    const struct secret *s = own.len ? &own : known_secret(choice);
    expand(p, n, s, &text);
    check(s, &text, piece);
    buf_done(&text);
    redact_words_unref(own.words);
    return 0;
}
