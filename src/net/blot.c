/* Three readers look at every byte: one at the bytes as they are, one at what escapes in them stand
 * for, and one at that with base64's two alphabets made one and its line breaks left out. Where a
 * word ends in one of them, the bytes that it was read from are written over. */
#include "net/blot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "net/blot_private.h"

#define BREAKS_MAX 4 /* in a row within base64: CR, LF and a little blank */
#define HELD_MAX (BLOT_WORD_MAX * 2 * (BREAKS_MAX + 1) * BLOT_TOKEN_MAX)

/* A needle of n characters has room for n positions and the next. */
static size_t ring_of(const struct trie *t)
{
    return t->longest + 1;
}

int blot_init(struct blot *b, struct blot_words *words)
{
    *b = (struct blot){ .held = BUF_INIT(HELD_MAX) };
    if (!words || words->plain.longest == 0)
        return 0;
    if (blot_words_seal(words) < 0)
        return -ENOMEM;
    b->decoded_from = calloc(ring_of(&words->plain), sizeof(*b->decoded_from));
    b->packed_from = calloc(ring_of(&words->packed), sizeof(*b->packed_from));
    if (!b->decoded_from || !b->packed_from) {
        blot_done(b);
        return -ENOMEM;
    }
    b->words = blot_words_ref(words);
    return 0;
}

void blot_done(struct blot *b)
{
    if (b->held.data)
        explicit_bzero(b->held.data, b->held.cap);
    buf_done(&b->held);
    free(b->decoded_from);
    free(b->packed_from);
    blot_words_unref(b->words);
    *b = (struct blot){ .held = BUF_INIT(HELD_MAX) };
}

/* From there to what was read last, which for an escape is its end. */
static void write_over(struct blot *b, uint64_t from, uint64_t to)
{
    memset(b->text + (from - b->base), '*', (size_t)(to - from));
}

static void take_plain(struct blot *b, unsigned char c, uint64_t at)
{
    const struct trie *t = &b->words->plain;
    b->plain = trie_step(t, b->plain, c);
    uint32_t found = t->nodes[b->plain].found;
    if (found)
        write_over(b, at + 1 - found, at + 1);
}

static bool is_break(unsigned char c)
{
    return c == '\r' || c == '\n' || c == ' ' || c == '\t';
}

static void take_packed(struct blot *b, unsigned char c, uint64_t from, uint64_t to)
{
    const struct trie *t = &b->words->packed;
    size_t ring = ring_of(t);
    if (is_break(c) && b->packed && b->skipped < BREAKS_MAX) {
        b->skipped++;
        return;
    }
    b->skipped = 0;
    c = c == '-' ? '+' : c == '_' ? '/' : c;
    b->packed_from[b->n_packed++ % ring] = from;
    b->packed = trie_step(t, b->packed, c);
    uint32_t found = t->nodes[b->packed].found;
    if (found)
        write_over(b, b->packed_from[(b->n_packed - found) % ring], to);
}

/* A byte that [from, to) stands for. */
static void take_decoded(struct blot *b, unsigned char c, uint64_t from, uint64_t to)
{
    const struct trie *t = &b->words->plain;
    size_t ring = ring_of(t);
    b->decoded_from[b->n_decoded++ % ring] = from;
    b->decoded = trie_step(t, b->decoded, c);
    uint32_t found = t->nodes[b->decoded].found;
    if (found)
        write_over(b, b->decoded_from[(b->n_decoded - found) % ring], to);
    take_packed(b, c, from, to);
}

/* ---- escapes ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

enum { TOKEN_NONE = -1, TOKEN_MORE = -2 };

/* n digits, all of them there or not yet. */
static int read_hex(const char *p, unsigned have, unsigned want)
{
    int v = 0;
    for (unsigned i = 0; i < have && i < want; i++) {
        int d = hex_digit(p[i]);
        if (d < 0)
            return TOKEN_NONE;
        v = v * 16 + d;
    }
    return have < want ? TOKEN_MORE : v;
}

static int read_backslash(const char *p, unsigned n)
{
    static const char said[] = "\"\\/'bfnrt", meant[] = "\"\\/'\b\f\n\r\t";
    if (n < 2)
        return TOKEN_MORE;
    if (p[1] == 'u')
        return read_hex(p + 2, n - 2, 4);
    if (p[1] == 'x')
        return read_hex(p + 2, n - 2, 2);
    const char *at = p[1] ? strchr(said, p[1]) : NULL;
    return at ? meant[at - said] : TOKEN_NONE;
}

/* "#65;" or "#x41;" */
static int read_number(const char *p, unsigned n)
{
    bool hex = n > 1 && (p[1] | 0x20) == 'x';
    int v = 0;
    for (unsigned i = hex ? 2 : 1; i < n; i++) {
        int d = p[i] == ';' ? -1 : hex_digit(p[i]);
        if (p[i] == ';')
            return i > (hex ? 2u : 1u) && v <= 0xffff ? v : TOKEN_NONE;
        if (d < 0 || (!hex && d > 9))
            return TOKEN_NONE;
        v = v * (hex ? 16 : 10) + d;
    }
    return n < BLOT_TOKEN_MAX - 1 ? TOKEN_MORE : TOKEN_NONE;
}

static int read_entity(const char *p, unsigned n)
{
    static const struct {
        const char *name;
        char is;
    } names[] = {
        { "amp;", '&' }, { "lt;", '<' }, { "gt;", '>' }, { "quot;", '"' }, { "apos;", '\'' }
    };
    if (n < 2)
        return TOKEN_MORE;
    if (p[1] == '#')
        return read_number(p + 1, n - 1);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t len = strlen(names[i].name);
        if (n - 1 <= len && strncasecmp(p + 1, names[i].name, n - 1) == 0)
            return n - 1 == len ? names[i].is : TOKEN_MORE;
    }
    return TOKEN_NONE;
}

static int read_token(const char *p, unsigned n)
{
    switch (p[0]) {
    case '%': return read_hex(p + 1, n - 1, 2);
    case '\\': return read_backslash(p, n);
    case '&': return read_entity(p, n);
    default: return TOKEN_NONE;
    }
}

/* A percent sign stands for a byte; the others for a character, in UTF-8 as secrets are. */
static void take_character(struct blot *b, int c, bool byte, uint64_t from, uint64_t to)
{
    if (c < 0x80 || byte) {
        take_decoded(b, (unsigned char)c, from, to);
        return;
    }
    if (c >= 0x800) {
        take_decoded(b, (unsigned char)(0xe0 | c >> 12), from, to);
        take_decoded(b, (unsigned char)(0x80 | (c >> 6 & 0x3f)), from, to);
    } else {
        take_decoded(b, (unsigned char)(0xc0 | c >> 6), from, to);
    }
    take_decoded(b, (unsigned char)(0x80 | (c & 0x3f)), from, to);
}

/* The token with this byte behind it. What turns out to be no escape is read byte by byte. */
static void take_escaped(struct blot *b, char c, uint64_t at)
{
    char again[BLOT_TOKEN_MAX];
    b->token[b->n_token++] = c;
    int v = read_token(b->token, b->n_token);
    unsigned n = b->n_token;
    if (v == TOKEN_MORE)
        return;
    b->n_token = 0;
    if (v != TOKEN_NONE) {
        take_character(b, v, b->token[0] == '%', at + 1 - n, at + 1);
        return;
    }
    memcpy(again, b->token, n);
    take_decoded(b, (unsigned char)again[0], at + 1 - n, at + 2 - n);
    for (unsigned i = 1; i < n; i++)
        take_escaped(b, again[i], at + 1 - n + i);
}

/* ---- the stream ---- */

static bool is_idle(const struct blot *b)
{
    return !b->plain && !b->decoded && !b->packed && !b->n_token;
}

/* The first of the bytes before `end` that so many characters at the end of each reader were read from. */
static uint64_t first_of(const struct blot *b, uint64_t end, size_t plain, size_t decoded,
                         size_t packed)
{
    const struct blot_words *w = b->words;
    uint64_t from = end - plain;
    uint64_t at = decoded ? b->decoded_from[(b->n_decoded - decoded) % ring_of(&w->plain)] : end;
    if (at < from)
        from = at;
    at = packed ? b->packed_from[(b->n_packed - packed) % ring_of(&w->packed)] : end;
    return at < from ? at : from;
}

/* The first byte that is still needed of those before `end`. */
static uint64_t needed_from(const struct blot *b, uint64_t end)
{
    const struct trie_node *plain = b->words->plain.nodes, *packed = b->words->packed.nodes;
    uint64_t from = first_of(b, end, plain[b->plain].needed, plain[b->decoded].needed,
                             packed[b->packed].needed);
    return end - b->n_token < from ? end - b->n_token : from;
}

/* Where a word begins of which the end was cut off. */
static uint64_t cut_from(const struct blot *b, uint64_t end)
{
    const struct trie_node *plain = b->words->plain.nodes, *packed = b->words->packed.nodes;
    return first_of(b, end, plain[b->plain].cut, plain[b->decoded].cut, packed[b->packed].cut);
}

/* What was held back and these bytes, behind each other in `out`: there they are worked on. */
static int lay_out(struct blot *b, const char *p, size_t n, struct buf *out)
{
    size_t from = out->len;
    int r = b->held.len ? buf_append(out, b->held.data, b->held.len) : 0;
    if (r >= 0)
        r = buf_append(out, p, n);
    if (r < 0)
        out->len = from;
    b->text = out->data + from;
    return r;
}

static void read_text(struct blot *b, size_t from, size_t n)
{
    for (size_t i = from; i < n; i++) {
        if (is_idle(b) && !b->words->starts[(unsigned char)b->text[i]])
            continue; /* nothing can begin with it */
        char c = b->text[i];
        take_plain(b, (unsigned char)c, b->base + i);
        take_escaped(b, c, b->base + i);
    }
}

int blot_take(struct blot *b, const char *p, size_t n, struct buf *out)
{
    if (!b->words)
        return buf_append(out, p, n);
    size_t before = b->held.len, all = before + n;
    int r = lay_out(b, p, n, out);
    if (r < 0)
        return r;
    read_text(b, before, all);
    uint64_t end = b->base + all, until = needed_from(b, end);
    size_t keep = (size_t)(end - until);
    buf_clear(&b->held);
    r = keep ? buf_append(&b->held, b->text + all - keep, keep) : 0;
    out->len -= keep;
    b->base = until;
    return r;
}

/* An escape that was cut short stands for itself. */
static void end_token(struct blot *b, uint64_t end)
{
    char rest[BLOT_TOKEN_MAX];
    unsigned n = b->n_token;
    memcpy(rest, b->token, n);
    b->n_token = 0;
    take_decoded(b, (unsigned char)rest[0], end - n, end - n + 1);
    for (unsigned i = 1; i < n; i++)
        take_escaped(b, rest[i], end - n + i);
}

int blot_end(struct blot *b, struct buf *out)
{
    uint64_t end = b->base + b->held.len;
    if (!b->words || b->held.len == 0)
        return 0;
    int r = lay_out(b, "", 0, out);
    if (r < 0)
        return r;
    while (b->n_token)
        end_token(b, end);
    write_over(b, cut_from(b, end), end);
    buf_clear(&b->held);
    b->base = end;
    b->plain = b->decoded = b->packed = 0;
    b->skipped = 0;
    return 0;
}

int blot_whole(struct blot_words *words, char *p, size_t n)
{
    struct blot b;
    struct buf out = BUF_INIT(n + 1);
    int r = blot_init(&b, words);
    if (r < 0)
        return r;
    r = blot_take(&b, p, n, &out);
    if (r >= 0)
        r = blot_end(&b, &out);
    if (r >= 0 && out.len == n && n)
        memcpy(p, out.data, n);
    blot_done(&b);
    buf_done(&out);
    return r < 0 ? r : 0;
}
