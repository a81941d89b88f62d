/* Each byte is read in several views (enum redact_view), and each view looks for words in a trie.
 * Where a word ends in a view, stars replace the bytes that it was read from. While no view is
 * within a word, pairs of bytes that cannot begin a word are skipped. */
#include "net/redact.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/redact_private.h"

#define BREAKS_MAX 4  /* skipped in a row within base64: CR, LF and a little blank */
#define BETWEEN_MAX 8 /* skipped in a row between folded characters: ", ", "=" CR LF and a margin */
#define HELD_MAX (4 * 1024 * 1024) /* a secret with each byte escaped twice is shorter */

static const struct trie *trie_of(const struct redact_words *w, enum redact_view view)
{
    switch (view) {
    case REDACT_PACKED: return &w->packed;
    case REDACT_LOOSE:
    case REDACT_FOLDED:
    case REDACT_TWICE: return &w->folded;
    case REDACT_PLAIN:
    case REDACT_DECODED:
    case REDACT_VIEWS: break;
    }
    return &w->plain;
}

int redact_init(struct redact *b, struct redact_words *words)
{
    size_t all = 0;
    *b = (struct redact){ .held = BUF_INIT(HELD_MAX) };
    if (!words || words->plain.longest == 0)
        return 0;
    if (redact_words_seal(words) < 0)
        return -ENOMEM;
    for (int v = 0; v < REDACT_VIEWS; v++)
        all += trie_of(words, (enum redact_view)v)->ring;
    b->rings = calloc(all, sizeof(*b->rings));
    if (!b->rings)
        return -ENOMEM;
    uint64_t *at = b->rings;
    for (int v = 0; v < REDACT_VIEWS; v++) {
        b->readers[v] =
            (struct redact_reader){ .trie = trie_of(words, (enum redact_view)v), .from = at };
        at += trie_of(words, (enum redact_view)v)->ring;
    }
    b->words = redact_words_ref(words);
    return 0;
}

void redact_done(struct redact *b)
{
    if (b->held.data)
        explicit_bzero(b->held.data, b->held.cap);
    buf_done(&b->held);
    free(b->rings);
    redact_words_unref(b->words);
    *b = (struct redact){ .held = BUF_INIT(HELD_MAX) };
}

/* ---- views ---- */

static uint64_t began(const struct redact_reader *r, uint32_t characters)
{
    return r->from[(r->n - characters) & (r->trie->ring - 1)];
}

/* Feed a view the character that the bytes [from, to) stand for. */
static void take(struct redact *b, enum redact_view view, unsigned char c, uint64_t from,
                 uint64_t to)
{
    struct redact_reader *r = &b->readers[view];
    const struct trie *t = r->trie;
    r->at = r->at ? trie_step(t, r->at, c) : t->first[c];
    if (!r->at) /* outside of any word: no position is needed */
        return;
    r->from[r->n++ & (t->ring - 1)] = from;
    uint32_t found = t->nodes[r->at].found;
    if (found) {
        uint64_t first = began(r, found);
        memset(b->text + (first - b->base), '*', (size_t)(to - first));
    }
}

/* Skip a character between others, unless too many came in a row. A blank line ends a word: it
 * ends an event of a stream, and the client must get that event before the next one comes. */
static bool skips(struct redact_reader *r, unsigned char c, unsigned most)
{
    r->lines = (uint8_t)(r->lines + (c == '\n'));
    return ++r->skipped <= most && r->lines < 2;
}

static void take_packed(struct redact *b, unsigned char c, uint64_t from, uint64_t to)
{
    struct redact_reader *r = &b->readers[REDACT_PACKED];
    if (r->at && redact_is_break(c) && skips(r, c, BREAKS_MAX))
        return;
    r->skipped = r->lines = 0;
    take(b, REDACT_PACKED, redact_pack(c), from, to);
}

/* Do not skip a blank or a line end behind a first character: otherwise the ends of many lines
 * would be held back until the next line. */
static void take_folded(struct redact *b, enum redact_view view, unsigned char c, uint64_t from,
                        uint64_t to)
{
    struct redact_reader *r = &b->readers[view];
    if (r->at && redact_is_between(c) && (r->trie->nodes[r->at].depth > 1 || !redact_is_break(c)) &&
        skips(r, c, BETWEEN_MAX))
        return;
    r->skipped = r->lines = 0;
    take(b, view, redact_fold(c), from, to);
}

/* ---- escapes ---- */

static void take_escaped(struct redact *b, struct redact_escape *e, char c, uint64_t from,
                         uint64_t to);

static void take_decoded(struct redact *b, const struct redact_escape *e, unsigned char c,
                         uint64_t from, uint64_t to)
{
    if (e == &b->twice) {
        take_folded(b, REDACT_TWICE, c, from, to);
        return;
    }
    take(b, REDACT_DECODED, c, from, to);
    take_packed(b, c, from, to);
    take_folded(b, REDACT_FOLDED, c, from, to);
    take_escaped(b, &b->twice, (char)c, from, to);
}

/* A percent sign stands for a byte; the others for a character, in UTF-8 as secrets are. */
static void take_character(struct redact *b, const struct redact_escape *e, int c, bool byte,
                           uint64_t from, uint64_t to)
{
    if (c < 0x80 || byte) {
        take_decoded(b, e, (unsigned char)c, from, to);
        return;
    }
    if (c >= 0x800) {
        take_decoded(b, e, (unsigned char)(0xe0 | c >> 12), from, to);
        take_decoded(b, e, (unsigned char)(0x80 | (c >> 6 & 0x3f)), from, to);
    } else {
        take_decoded(b, e, (unsigned char)(0xc0 | c >> 6), from, to);
    }
    take_decoded(b, e, (unsigned char)(0x80 | (c & 0x3f)), from, to);
}

/* The token is no escape: its first character stands for itself, the others are read again. */
static void give_up(struct redact *b, struct redact_escape *e)
{
    struct redact_escape again = *e;
    e->n = 0;
    take_decoded(b, e, (unsigned char)again.token[0], again.from[0], again.to[0]);
    for (unsigned i = 1; i < again.n; i++)
        take_escaped(b, e, again.token[i], again.from[i], again.to[i]);
}

/* Add a character to the token. */
static void take_escaped(struct redact *b, struct redact_escape *e, char c, uint64_t from,
                         uint64_t to)
{
    if (e->n == 0 && c != '%' && c != '\\' && c != '&') {
        take_decoded(b, e, (unsigned char)c, from, to);
        return;
    }
    e->token[e->n] = c;
    e->from[e->n] = from;
    e->to[e->n++] = to;
    int v = escape_read(e->token, e->n);
    if (v == ESCAPE_MORE)
        return;
    if (v == ESCAPE_NONE) {
        give_up(b, e);
        return;
    }
    e->n = 0;
    take_character(b, e, v, e->token[0] == '%', e->from[0], to);
}

/* ---- the stream ---- */

static bool is_idle(const struct redact *b)
{
    uint32_t any = b->once.n | b->twice.n;
    for (int v = 0; v < REDACT_VIEWS; v++)
        any |= b->readers[v].at;
    return !any;
}

/* The first byte before `end` that a view still needs; with `cut`, the first byte of a word that
 * the end cuts off. */
static uint64_t first_of(const struct redact *b, uint64_t end, bool cut)
{
    uint64_t from = end;
    for (int v = 0; v < REDACT_VIEWS; v++) {
        const struct redact_reader *r = &b->readers[v];
        const struct trie_node *node = &r->trie->nodes[r->at];
        uint32_t n = cut ? node->cut : node->needed;
        uint64_t at = n ? began(r, n) : end;
        from = at < from ? at : from;
    }
    if (!cut && b->once.n && b->once.from[0] < from)
        from = b->once.from[0];
    return !cut && b->twice.n && b->twice.from[0] < from ? b->twice.from[0] : from;
}

/* What was held back and these bytes, behind each other in `out`: there they are worked on. */
static int lay_out(struct redact *b, const char *p, size_t n, struct buf *out)
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

static bool may_begin(const struct redact_words *w, unsigned char first, unsigned char second)
{
    return w->pairs[first][second / 64] >> (second % 64) & 1;
}

static void read_text(struct redact *b, size_t from, size_t n)
{
    bool idle = is_idle(b);
    for (size_t i = from; i < n; i++) {
        unsigned char c = (unsigned char)b->text[i];
        if (idle && i + 1 < n && !may_begin(b->words, c, (unsigned char)b->text[i + 1]))
            continue;
        take(b, REDACT_PLAIN, c, b->base + i, b->base + i + 1);
        take_folded(b, REDACT_LOOSE, c, b->base + i, b->base + i + 1);
        take_escaped(b, &b->once, (char)c, b->base + i, b->base + i + 1);
        idle = is_idle(b);
    }
}

int redact_take(struct redact *b, const char *p, size_t n, struct buf *out)
{
    if (!b->words)
        return buf_append(out, p, n);
    size_t before = b->held.len, all = before + n;
    int r = lay_out(b, p, n, out);
    if (r < 0)
        return r;
    read_text(b, before, all);
    uint64_t end = b->base + all, until = first_of(b, end, false);
    size_t keep = (size_t)(end - until);
    buf_clear(&b->held);
    r = keep ? buf_append(&b->held, b->text + all - keep, keep) : 0;
    out->len -= keep;
    b->base = until;
    return r;
}

int redact_end(struct redact *b, struct buf *out)
{
    uint64_t end = b->base + b->held.len;
    if (!b->words || b->held.len == 0)
        return 0;
    int r = lay_out(b, "", 0, out);
    if (r < 0)
        return r;
    while (b->once.n) /* an escape that was cut short stands for itself */
        give_up(b, &b->once);
    while (b->twice.n)
        give_up(b, &b->twice);
    uint64_t from = first_of(b, end, true);
    memset(b->text + (from - b->base), '*', (size_t)(end - from));
    buf_clear(&b->held);
    b->base = end;
    for (int v = 0; v < REDACT_VIEWS; v++)
        b->readers[v] =
            (struct redact_reader){ .trie = b->readers[v].trie, .from = b->readers[v].from };
    return 0;
}

int redact_whole(struct redact_words *words, char *p, size_t n)
{
    struct redact b;
    struct buf out = BUF_INIT(n + 1);
    int r = redact_init(&b, words);
    if (r < 0)
        return r;
    r = redact_take(&b, p, n, &out);
    if (r >= 0)
        r = redact_end(&b, &out);
    if (r >= 0 && out.len == n && n)
        memcpy(p, out.data, n);
    redact_done(&b);
    buf_done(&out);
    return r < 0 ? r : 0;
}
