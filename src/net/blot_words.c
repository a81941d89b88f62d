/* The words to be found, as two tries with links from each end to the longest beginning that it is
 * the end of (Aho and Corasick). One holds the secrets, the other what base64 and hex make of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/blot_private.h"

#define PACKED_MIN 6   /* characters; fewer would be found by chance everywhere */
#define CUT_MIN 8      /* of one that is cut off: what nobody guesses in one go, */
#define CUT_MISSING 15 /* or so many are missing at most; many secrets begin with what is known */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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

static int trie_add(struct trie *t, const char *p, size_t n, size_t known)
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

/* ---- forms ---- */

/* What base64 makes of the secret when `shift` bytes stand before it in its group of three: the
 * characters that are of the secret alone. The last may be filled up with zeros, at the end of a text. */
static int add_base64(struct trie *t, const char *p, size_t n, size_t known, size_t shift)
{
    size_t bits = n * 8, from = shift == 0 ? 0 : shift == 1 ? 4 : 2;
    size_t whole = bits > from ? (bits - from) / 6 : 0, rest = bits > from ? (bits - from) % 6 : 0;
    char *text = malloc(whole + 1);
    int r = text ? 0 : -ENOMEM;
    for (size_t i = 0; text && i < whole + (rest > 0); i++) {
        unsigned v = 0;
        for (size_t b = 0; b < 6; b++) {
            size_t at = from + i * 6 + b;
            v = v << 1 | (at < bits ? ((unsigned char)p[at / 8] >> (7 - at % 8)) & 1u : 0u);
        }
        text[i] = alphabet[v];
    }
    if (r == 0 && whole >= PACKED_MIN)
        r = trie_add(t, text, whole, (known * 8 + 5) / 6);
    if (r == 0 && whole >= PACKED_MIN && rest > 0)
        r = trie_add(t, text, whole + 1, (known * 8 + 5) / 6);
    if (text)
        explicit_bzero(text, whole + 1);
    free(text);
    return r;
}

static int add_hex(struct trie *t, const char *p, size_t n, size_t known, const char *digits)
{
    char *text = malloc(2 * n);
    int r = text ? 0 : -ENOMEM;
    for (size_t i = 0; text && i < n; i++) {
        text[2 * i] = digits[(unsigned char)p[i] >> 4];
        text[2 * i + 1] = digits[(unsigned char)p[i] & 15];
    }
    if (r == 0 && 2 * n >= PACKED_MIN)
        r = trie_add(t, text, 2 * n, 2 * known);
    if (text)
        explicit_bzero(text, 2 * n);
    free(text);
    return r;
}

/* ---- life ---- */

struct blot_words *blot_words_new(void)
{
    struct blot_words *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->refs = 1;
    if (trie_init(&w->plain) < 0 || trie_init(&w->packed) < 0) {
        blot_words_unref(w);
        return NULL;
    }
    return w;
}

int blot_words_add(struct blot_words *w, const char *p, size_t n)
{
    return blot_words_add_behind(w, p, n, 0);
}

int blot_words_add_behind(struct blot_words *w, const char *p, size_t n, size_t known)
{
    if (n == 0)
        return 0;
    if (n > BLOT_WORD_MAX)
        return -E2BIG;
    int r = trie_add(&w->plain, p, n, known);
    for (size_t shift = 0; shift < 3 && r == 0; shift++)
        r = add_base64(&w->packed, p, n, known, shift);
    if (r == 0)
        r = add_hex(&w->packed, p, n, known, "0123456789abcdef");
    if (r == 0)
        r = add_hex(&w->packed, p, n, known, "0123456789ABCDEF");
    return r < 0 ? r : w->plain.n + w->packed.n > BLOT_NODES_MAX ? -E2BIG : 0;
}

static void mark_starts(const struct trie *t, bool starts[256])
{
    for (size_t c = 0; c < 256; c++)
        starts[c] |= t->first[c] != 0;
}

int blot_words_seal(struct blot_words *w)
{
    if (w->sealed)
        return 0;
    if (trie_link(&w->plain) < 0 || trie_link(&w->packed) < 0)
        return -ENOMEM;
    mark_starts(&w->plain, w->starts);
    mark_starts(&w->packed, w->starts);
    w->starts['-'] |= w->starts['+']; /* base64's other alphabet */
    w->starts['_'] |= w->starts['/'];
    w->starts['%'] = w->starts['\\'] = w->starts['&'] = true;
    w->sealed = true;
    return 0;
}

struct blot_words *blot_words_ref(struct blot_words *w)
{
    if (w)
        w->refs++;
    return w;
}

void blot_words_unref(struct blot_words *w)
{
    if (!w || --w->refs > 0)
        return;
    trie_done(&w->plain);
    trie_done(&w->packed);
    free(w);
}
