/* redact_private - the tries that redact.c, redact_escape.c, redact_words.c and redact_forms.c share. */
#pragma once
#include "net/redact.h"

struct trie_node {
    uint32_t child, next; /* 0: none; the root is nobody's child */
    uint32_t fail;
    uint32_t depth;
    uint32_t needed; /* of the bytes that led here, for a word that goes on */
    uint32_t found;  /* the longest word that ends here; 0: none */
    uint32_t cut;    /* bytes that led here, if they are most of a word; 0: they are not */
    unsigned char byte;
};

struct trie {
    struct trie_node *nodes;
    size_t n, cap;
    size_t longest, ring; /* ring: a power of two above longest */
    uint32_t first[256];  /* the root's children by their byte */
};

struct redact_words {
    unsigned refs;
    bool sealed;
    struct trie plain, packed, folded;
    uint64_t pairs[256][4]; /* by the first byte: second bytes with which a word may begin */
};

int trie_add(struct trie *t, const char *p, size_t n, size_t known);
uint32_t trie_step(const struct trie *t, uint32_t at, unsigned char c);
int redact_words_seal(struct redact_words *w); /* nothing is added any more */

/* ---- redact_forms.c ---- */
int redact_forms_add(struct redact_words *w, const char *p, size_t n, size_t known);
bool redact_is_break(unsigned char c);   /* skipped in base64 */
bool redact_is_between(unsigned char c); /* skipped in folded forms */
unsigned char redact_fold(unsigned char c);
unsigned char redact_pack(unsigned char c); /* base64's second alphabet in terms of the first */

/* ---- redact_escape.c ---- */
enum { ESCAPE_NONE = -1, ESCAPE_MORE = -2 };
/* The value of an escape of n characters: a byte after a percent sign, else a character. */
int escape_read(const char *p, unsigned n);
