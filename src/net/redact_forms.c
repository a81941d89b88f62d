/* The forms in which a secret is looked for: plain, escaped or not, and
 *
 * - packed: base64 of both alphabets, at each of the three places in its group, over line breaks;
 * - folded, which ignores case and separators between characters (blanks, line breaks, zeros as of
 *   UTF-16, colons, dashes, commas, and the equals signs of quoted-printable): the secret, the secret
 *   backwards, hex, the numbers of its bytes, and base32 at each of its five places.
 *
 * Forms that are too short are left out: they would be found by chance everywhere. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/redact_private.h"

#define FORM_MIN 6 /* characters */
#define RUN_MIN 12

bool redact_is_break(unsigned char c)
{
    return c == '\r' || c == '\n' || c == ' ' || c == '\t';
}

bool redact_is_between(unsigned char c)
{
    return redact_is_break(c) || c == '\0' || c == ':' || c == '-' || c == '=' || c == ',';
}

unsigned char redact_fold(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c | 0x20) : c;
}

unsigned char redact_pack(unsigned char c)
{
    return c == '-' ? '+' : c == '_' ? '/' : c;
}

/* ---- in groups of bits ---- */

struct code {
    const char *alphabet;
    size_t bits; /* of a character */
};

static const struct code base64 = {
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 6
};
static const struct code base32 = { "abcdefghijklmnopqrstuvwxyz234567", 5 };

/* Add the characters of an encoding that hold bits of the secret alone, the first of them
 * beginning `from` bits within it. The last one may be padded with zeros, at the end of a text. */
static int add_bits(struct trie *t, const struct code *code, const char *p, size_t n, size_t known,
                    size_t from)
{
    size_t bits = n * 8, each = code->bits;
    size_t whole = bits > from ? (bits - from) / each : 0;
    bool rest = bits > from && (bits - from) % each > 0;
    if (whole < FORM_MIN)
        return 0;
    char *text = malloc(whole + 1);
    if (!text)
        return -ENOMEM;
    for (size_t i = 0; i < whole + rest; i++) {
        unsigned v = 0;
        for (size_t b = 0; b < each; b++) {
            size_t at = from + i * each + b;
            v = v << 1 | (at < bits ? ((unsigned char)p[at / 8] >> (7 - at % 8)) & 1u : 0u);
        }
        text[i] = code->alphabet[v];
    }
    size_t of_known = (known * 8 + each - 1) / each;
    int r = trie_add(t, text, whole, of_known);
    if (r == 0 && rest)
        r = trie_add(t, text, whole + 1, of_known);
    explicit_bzero(text, whole + 1);
    free(text);
    return r;
}

/* ---- byte by byte ---- */

#define EACH_MAX 3 /* characters for a byte */

typedef size_t byte_form(unsigned char c, char out[EACH_MAX]);

static size_t as_text(unsigned char c, char out[EACH_MAX])
{
    out[0] = (char)redact_fold(c);
    return !redact_is_between(c);
}

static size_t as_hex(unsigned char c, char out[EACH_MAX])
{
    static const char digits[] = "0123456789abcdef";
    out[0] = digits[c >> 4];
    out[1] = digits[c & 15];
    return 2;
}

/* Quoted-printable without its equals signs. */
static size_t as_quoted(unsigned char c, char out[EACH_MAX])
{
    return c == '=' || c < ' ' || c > '~' ? as_hex(c, out) : as_text(c, out);
}

static size_t as_number(unsigned char c, char out[EACH_MAX])
{
    size_t n = 0;
    if (c >= 100)
        out[n++] = (char)('0' + c / 100);
    if (c >= 10)
        out[n++] = (char)('0' + c / 10 % 10);
    out[n++] = (char)('0' + c % 10);
    return n;
}

enum order { FORWARDS, BACKWARDS };

static int add_bytes(struct trie *t, byte_form *form, enum order order, const char *p, size_t n,
                     size_t known)
{
    char *text = malloc(n * EACH_MAX);
    size_t len = 0, of_known = 0;
    int r = 0;
    if (!text)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        len += form((unsigned char)p[order == BACKWARDS ? n - 1 - i : i], text + len);
        if (i + 1 == known)
            of_known = len;
    }
    if (len >= FORM_MIN)
        r = trie_add(t, text, len, order == BACKWARDS ? 0 : of_known);
    /* A line end behind the first character is not skipped (take_folded in redact.c), so the rest
     * is a word, too. */
    if (r == 0 && form == as_text && order == FORWARDS && len > FORM_MIN)
        r = trie_add(t, text + 1, len - 1, of_known ? of_known - 1 : 0);
    explicit_bzero(text, n * EACH_MAX);
    free(text);
    return r;
}

/* Letters beyond ASCII change with case and in UTF-16 in ways that we do not follow: add the
 * ASCII runs between them as words. */
static int add_runs(struct trie *t, const char *p, size_t n)
{
    int r = 0;
    for (size_t at = 0, end; at < n && r == 0; at = end + 1) {
        for (end = at; end < n && !(p[end] & 0x80);)
            end++;
        if (end - at < RUN_MIN || end - at == n)
            continue;
        r = add_bytes(t, as_text, FORWARDS, p + at, end - at, 0);
        if (r == 0)
            r = add_bytes(t, as_text, BACKWARDS, p + at, end - at, 0);
    }
    return r;
}

static int add_folded(struct trie *t, const char *p, size_t n, size_t known)
{
    static byte_form *const forms[] = { as_text, as_quoted, as_hex, as_number };
    int r = add_bytes(t, as_text, BACKWARDS, p, n, known);
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]) && r == 0; i++)
        r = add_bytes(t, forms[i], FORWARDS, p, n, known);
    return r < 0 || known ? r : add_runs(t, p, n);
}

int redact_forms_add(struct redact_words *w, const char *p, size_t n, size_t known)
{
    int r = 0;
    for (size_t from = 0; from < base64.bits && r == 0; from += 2)
        r = add_bits(&w->packed, &base64, p, n, known, from);
    for (size_t from = 0; from < base32.bits && r == 0; from++)
        r = add_bits(&w->folded, &base32, p, n, known, from);
    return r < 0 ? r : add_folded(&w->folded, p, n, known);
}
