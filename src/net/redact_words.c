/* The words to find, as tries with Aho and Corasick's links from each ending to the longest
 * beginning that it equals: one trie of the secrets, one of their base64, one of their folded
 * forms. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/redact_private.h"

#define CUT_MIN 8      /* of one that is cut off: what nobody guesses in one go, */
#define CUT_MISSING 15 /* or so many are missing at most; many secrets begin with what is known */

static uint32_t child_of(const struct trie *t, uint32_t at, unsigned char c)
{
    uint32_t n = t->nodes[at].child;
    while (n && t->nodes[n].byte != c)
        n = t->nodes[n].next;
    return n;
}

static int trie_init(struct trie *t)
{
    t->nodes = calloc(1, sizeof(*t->nodes));
    t->n = t->cap = t->nodes ? 1 : 0;
    return t->nodes ? 0 : -ENOMEM;
}

static void trie_done(struct trie *t)
{
    if (t->nodes)
        explicit_bzero(t->nodes, t->n * sizeof(*t->nodes));
    free(t->nodes);
}

/* Not realloc: what it leaves behind would not be wiped. */
static int trie_grow(struct trie *t)
{
    size_t cap = t->cap < 256 ? 256 : t->cap * 2;
    struct trie_node *nodes = calloc(cap, sizeof(*nodes));
    if (!nodes)
        return -ENOMEM;
    memcpy(nodes, t->nodes, t->n * sizeof(*nodes));
    trie_done(t);
    t->nodes = nodes;
    t->cap = cap;
    return 0;
}

/* How much of a word must be there for it to be hidden without its end. */
static size_t cut_from(size_t n, size_t known)
{
    size_t rest = n > known ? n - known : 0, least = rest - rest / 2;
    if (rest > CUT_MISSING && least < rest - CUT_MISSING)
        least = rest - CUT_MISSING;
    return known + (least < CUT_MIN ? CUT_MIN : least);
}

int trie_add(struct trie *t, const char *p, size_t n, size_t known)
{
    size_t cut = cut_from(n, known);
    uint32_t at = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        uint32_t next = child_of(t, at, c);
        if (!next && t->n == t->cap && trie_grow(t) < 0)
            return -ENOMEM;
        if (!next) {
            next = (uint32_t)t->n++;
            t->nodes[next] = (struct trie_node){ .next = t->nodes[at].child,
                                                 .depth = t->nodes[at].depth + 1,
                                                 .byte = c };
            t->nodes[at].child = next;
        }
        at = next;
        if (i + 1 >= cut && i + 1 < n)
            t->nodes[at].cut = t->nodes[at].depth;
    }
    t->nodes[at].found = t->nodes[at].depth;
    if (n > t->longest)
        t->longest = n;
    return 0;
}

/* Breadth first: a link leads to a node that is less deep. */
static int trie_link(struct trie *t)
{
    uint32_t *queue = calloc(t->n, sizeof(*queue));
    size_t first = 0, last = 0;
    if (!queue)
        return -ENOMEM;
    for (t->ring = 8; t->ring <= t->longest;)
        t->ring *= 2;
    for (uint32_t c = t->nodes[0].child; c; c = t->nodes[c].next)
        t->first[t->nodes[c].byte] = c;
    queue[last++] = 0;
    while (first < last) {
        uint32_t at = queue[first++];
        for (uint32_t c = t->nodes[at].child; c; c = t->nodes[c].next) {
            struct trie_node *node = &t->nodes[c];
            node->fail = at ? trie_step(t, t->nodes[at].fail, node->byte) : 0;
            if (!node->found)
                node->found = t->nodes[node->fail].found;
            if (!node->cut)
                node->cut = t->nodes[node->fail].cut;
            node->needed = node->child ? node->depth : t->nodes[node->fail].needed;
            queue[last++] = c;
        }
    }
    free(queue);
    return 0;
}

uint32_t trie_step(const struct trie *t, uint32_t at, unsigned char c)
{
    while (at) {
        uint32_t next = child_of(t, at, c);
        if (next)
            return next;
        at = t->nodes[at].fail;
    }
    return t->first[c];
}

/* ---- life ---- */

struct redact_words *redact_words_new(void)
{
    struct redact_words *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->refs = 1;
    if (trie_init(&w->plain) < 0 || trie_init(&w->packed) < 0 || trie_init(&w->folded) < 0) {
        redact_words_unref(w);
        return NULL;
    }
    return w;
}

int redact_words_add(struct redact_words *w, const char *p, size_t n)
{
    return redact_words_add_behind(w, p, n, 0);
}

int redact_words_add_behind(struct redact_words *w, const char *p, size_t n, size_t known)
{
    if (n == 0)
        return 0;
    if (n > REDACT_WORD_MAX)
        return -E2BIG;
    int r = trie_add(&w->plain, p, n, known);
    if (r == 0)
        r = redact_forms_add(w, p, n, known);
    size_t nodes = w->plain.n + w->packed.n + w->folded.n;
    return r < 0 ? r : nodes > REDACT_NODES_MAX ? -E2BIG : 0;
}

/* ---- what may begin something ---- */

static void mark(struct redact_words *w, unsigned first, unsigned second)
{
    w->pairs[first][second / 64] |= 1ull << (second % 64);
}

static bool is_escape(unsigned c)
{
    return c == '%' || c == '\\' || c == '&';
}

/* Mark the bytes that may follow `first` (`is` in that trie): the next character of a word, a
 * skipped separator, or an escape. */
static void mark_seconds(struct redact_words *w, const struct trie *t, unsigned first,
                         unsigned char is, unsigned char (*read)(unsigned char c),
                         bool (*left_out)(unsigned char c))
{
    uint32_t node = t->first[is];
    if (!node)
        return;
    bool ends = t->nodes[node].found != 0;
    bool follows[256] = { false };
    for (uint32_t c = t->nodes[node].child; c; c = t->nodes[c].next)
        follows[t->nodes[c].byte] = true;
    for (unsigned second = 0; second < 256; second++)
        if (ends || is_escape(second) || follows[read((unsigned char)second)] ||
            left_out((unsigned char)second))
            mark(w, first, second);
}

static unsigned char as_it_is(unsigned char c)
{
    return c;
}

static bool never(unsigned char c)
{
    (void)c;
    return false;
}

/* The separators that are skipped behind a first folded character. */
static bool is_near(unsigned char c)
{
    return redact_is_between(c) && !redact_is_break(c);
}

static void mark_pairs(struct redact_words *w)
{
    for (unsigned first = 0; first < 256; first++) {
        unsigned char c = (unsigned char)first;
        mark_seconds(w, &w->plain, first, c, as_it_is, never);
        mark_seconds(w, &w->packed, first, redact_pack(c), redact_pack, redact_is_break);
        mark_seconds(w, &w->folded, first, redact_fold(c), redact_fold, is_near);
        for (unsigned second = 0; is_escape(first) && second < 256; second++)
            mark(w, first, second);
    }
}

int redact_words_seal(struct redact_words *w)
{
    if (w->sealed)
        return 0;
    if (trie_link(&w->plain) < 0 || trie_link(&w->packed) < 0 || trie_link(&w->folded) < 0)
        return -ENOMEM;
    mark_pairs(w);
    w->sealed = true;
    return 0;
}

struct redact_words *redact_words_ref(struct redact_words *w)
{
    if (w)
        w->refs++;
    return w;
}

void redact_words_unref(struct redact_words *w)
{
    if (!w || --w->refs > 0)
        return;
    trie_done(&w->plain);
    trie_done(&w->packed);
    trie_done(&w->folded);
    free(w);
}
