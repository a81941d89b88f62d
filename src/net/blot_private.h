/* What blot.c and blot_words.c share. */
#pragma once
#include "net/blot.h"

struct trie_node {
    uint32_t child, next; /* 0: none; the root is nobody's child */
    uint32_t fail;
    uint32_t depth;
    uint32_t needed; /* of the bytes that led here, for a word that goes on */
    uint32_t found;  /* the longest word that ends here; 0: none */
    uint32_t
        cut; /* of the bytes that led here: most of a word, if it is cut off here; 0: of none */
    unsigned char byte;
};

struct trie {
    struct trie_node *nodes;
    size_t n, cap;
    size_t longest;
    uint32_t first[256]; /* the root's children by their byte */
};

struct blot_words {
    unsigned refs;
    bool sealed;
    bool starts[256]; /* a word, or something that stands for a byte, may begin with it */
    struct trie plain, packed;
};

uint32_t trie_step(const struct trie *t, uint32_t at, unsigned char c);
int blot_words_seal(struct blot_words *w); /* nothing is added any more */
