/* Each byte is read in several views (enum blot_view), and each view looks for words in a trie.
 * Where a word ends in a view, stars replace the bytes that it was read from. While no view is
 * within a word, pairs of bytes that cannot begin a word are skipped. */
#include "net/blot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/blot_private.h"

#define BREAKS_MAX 4  /* skipped in a row within base64: CR, LF and a little blank */
#define BETWEEN_MAX 8 /* skipped in a row between folded characters: ", ", "=" CR LF and a margin */
#define HELD_MAX (4 * 1024 * 1024) /* a secret with each byte escaped twice is shorter */

static const struct trie *trie_of(const struct blot_words *w, enum blot_view view)
{
    switch (view) {
    case BLOT_PACKED: return &w->packed;
    case BLOT_LOOSE:
    case BLOT_FOLDED:
    case BLOT_TWICE: return &w->folded;
    case BLOT_PLAIN:
    case BLOT_DECODED:
    case BLOT_VIEWS: break;
    }
    return &w->plain;
}

int blot_init(struct blot *b, struct blot_words *words)
{
    size_t all = 0;
    *b = (struct blot){ .held = BUF_INIT(HELD_MAX) };
    if (!words || words->plain.longest == 0)
        return 0;
    if (blot_words_seal(words) < 0)
        return -ENOMEM;
    for (int v = 0; v < BLOT_VIEWS; v++)
        all += trie_of(words, (enum blot_view)v)->ring;
    b->rings = calloc(all, sizeof(*b->rings));
    if (!b->rings)
        return -ENOMEM;
    uint64_t *at = b->rings;
    for (int v = 0; v < BLOT_VIEWS; v++) {
        b->readers[v] =
            (struct blot_reader){ .trie = trie_of(words, (enum blot_view)v), .from = at };
        at += trie_of(words, (enum blot_view)v)->ring;
    }
    b->words = blot_words_ref(words);
    return 0;
}

void blot_done(struct blot *b)
{
    if (b->held.data)
        explicit_bzero(b->held.data, b->held.cap);
    buf_done(&b->held);
    free(b->rings);
    blot_words_unref(b->words);
    *b = (struct blot){ .held = BUF_INIT(HELD_MAX) };
}

/* ---- views ---- */

static uint64_t began(const struct blot_reader *r, uint32_t characters)
{
    return r->from[(r->n - characters) & (r->trie->ring - 1)];
}

/* Feed a view the character that the bytes [from, to) stand for. */
static void take(struct blot *b, enum blot_view view, unsigned char c, uint64_t from, uint64_t to)
{
    struct blot_reader *r = &b->readers[view];
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
static bool skips(struct blot_reader *r, unsigned char c, unsigned most)
{
    r->lines = (uint8_t)(r->lines + (c == '\n'));
    return ++r->skipped <= most && r->lines < 2;
}

static void take_packed(struct blot *b, unsigned char c, uint64_t from, uint64_t to)
{
    struct blot_reader *r = &b->readers[BLOT_PACKED];
    if (r->at && blot_is_break(c) && skips(r, c, BREAKS_MAX))
        return;
    r->skipped = r->lines = 0;
    take(b, BLOT_PACKED, blot_pack(c), from, to);
}

/* Do not skip a blank or a line end behind a first character: otherwise the ends of many lines
 * would be held back until the next line. */
static void take_folded(struct blot *b, enum blot_view view, unsigned char c, uint64_t from,
                        uint64_t to)
{
    struct blot_reader *r = &b->readers[view];
    if (r->at && blot_is_between(c) && (r->trie->nodes[r->at].depth > 1 || !blot_is_break(c)) &&
        skips(r, c, BETWEEN_MAX))
        return;
    r->skipped = r->lines = 0;
    take(b, view, blot_fold(c), from, to);
}

/* ---- escapes ---- */

static void take_escaped(struct blot *b, struct blot_escape *e, char c, uint64_t from, uint64_t to);

static void take_decoded(struct blot *b, const struct blot_escape *e, unsigned char c,
                         uint64_t from, uint64_t to)
{
    if (e == &b->twice) {
        take_folded(b, BLOT_TWICE, c, from, to);
        return;
    }
    take(b, BLOT_DECODED, c, from, to);
    take_packed(b, c, from, to);
    take_folded(b, BLOT_FOLDED, c, from, to);
    take_escaped(b, &b->twice, (char)c, from, to);
}

/* A percent sign stands for a byte; the others for a character, in UTF-8 as secrets are. */
static void take_character(struct blot *b, const struct blot_escape *e, int c, bool byte,
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
static void give_up(struct blot *b, struct blot_escape *e)
{
    struct blot_escape again = *e;
    e->n = 0;
    take_decoded(b, e, (unsigned char)again.token[0], again.from[0], again.to[0]);
    for (unsigned i = 1; i < again.n; i++)
        take_escaped(b, e, again.token[i], again.from[i], again.to[i]);
}

/* Add a character to the token. */
static void take_escaped(struct blot *b, struct blot_escape *e, char c, uint64_t from, uint64_t to)
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

static bool is_idle(const struct blot *b)
{
    uint32_t any = b->once.n | b->twice.n;
    for (int v = 0; v < BLOT_VIEWS; v++)
        any |= b->readers[v].at;
    return !any;
}

/* The first byte before `end` that a view still needs; with `cut`, the first byte of a word that
 * the end cuts off. */
static uint64_t first_of(const struct blot *b, uint64_t end, bool cut)
{
    uint64_t from = end;
    for (int v = 0; v < BLOT_VIEWS; v++) {
        const struct blot_reader *r = &b->readers[v];
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

static bool may_begin(const struct blot_words *w, unsigned char first, unsigned char second)
{
    return w->pairs[first][second / 64] >> (second % 64) & 1;
}

static void read_text(struct blot *b, size_t from, size_t n)
{
    bool idle = is_idle(b);
    for (size_t i = from; i < n; i++) {
        unsigned char c = (unsigned char)b->text[i];
        if (idle && i + 1 < n && !may_begin(b->words, c, (unsigned char)b->text[i + 1]))
            continue;
        take(b, BLOT_PLAIN, c, b->base + i, b->base + i + 1);
        take_folded(b, BLOT_LOOSE, c, b->base + i, b->base + i + 1);
        take_escaped(b, &b->once, (char)c, b->base + i, b->base + i + 1);
        idle = is_idle(b);
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
    uint64_t end = b->base + all, until = first_of(b, end, false);
    size_t keep = (size_t)(end - until);
    buf_clear(&b->held);
    r = keep ? buf_append(&b->held, b->text + all - keep, keep) : 0;
    out->len -= keep;
    b->base = until;
    return r;
}

int blot_end(struct blot *b, struct buf *out)
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
    for (int v = 0; v < BLOT_VIEWS; v++)
        b->readers[v] =
            (struct blot_reader){ .trie = b->readers[v].trie, .from = b->readers[v].from };
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
