/* blot - replaces secrets in a stream of bytes with stars, however the stream is cut into
 * pieces.
 *
 * Lengths stay as they were, so a promised Content-Length stays true. blot_forms.c lists the
 * forms in which a secret is found. A byte is held back only while it may be the beginning of
 * one. If the stream ends within a secret, the part is hidden when it is most of the secret:
 * hiding less would tell a client that has a server repeat its guesses how far a guess is right.
 * A server can always reveal a secret in other ways; this is for echoes. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define BLOT_WORD_MAX (16 * 1024)
#define BLOT_NODES_MAX (640 * 1024) /* characters of all forms of all secrets, 32 bytes each */

/* What is to be found; streams share it, and each keeps it alive. */
struct blot_words;

struct blot_words *blot_words_new(void); /* NULL: no memory */
/* -E2BIG: it is too long, or all are; -ENOMEM. An empty one is no secret. Not once a stream has begun. */
int blot_words_add(struct blot_words *w, const char *p, size_t n);
/* One of which the first bytes may be known: a user's name. */
int blot_words_add_behind(struct blot_words *w, const char *p, size_t n, size_t known);
struct blot_words *blot_words_ref(struct blot_words *w); /* NULL stays NULL */
void blot_words_unref(struct blot_words *w);             /* wiped with the last */
DEFINE_FREEP(struct blot_words *, blot_words_unref)

#define BLOT_TOKEN_MAX 10 /* "&#x0041;" */

/* The views of a stream. Each has a place in a trie, and knows where in the stream its last
 * characters began. */
enum blot_view {
    BLOT_PLAIN,   /* as they are */
    BLOT_LOOSE,   /* in lower case, without separators between characters */
    BLOT_DECODED, /* with escapes decoded */
    BLOT_PACKED,  /* decoded, base64 in one alphabet without line breaks */
    BLOT_FOLDED,  /* decoded and loose */
    BLOT_TWICE,   /* decoded twice and loose */
    BLOT_VIEWS,
};

struct trie;

struct blot_reader {
    const struct trie *trie;
    uint32_t at; /* a node of the trie */
    uint8_t skipped, lines;
    uint64_t n; /* characters read */
    uint64_t *from;
};

/* Characters that may become an escape, and the bytes [from, to) of the stream that each was
 * read from. */
struct blot_escape {
    char token[BLOT_TOKEN_MAX];
    uint64_t from[BLOT_TOKEN_MAX], to[BLOT_TOKEN_MAX];
    unsigned n;
};

struct blot {
    struct blot_words *words; /* NULL: nothing is looked for */
    struct buf held;          /* read and not let go */
    char *text;               /* while bytes are taken: those, with what was held before them */
    uint64_t base;            /* where in the stream they begin */
    struct blot_reader readers[BLOT_VIEWS];
    struct blot_escape once, twice;
    uint64_t *rings; /* the memory behind all readers' `from` */
};

int blot_init(struct blot *b, struct blot_words *words); /* -ENOMEM; words may be NULL */
void blot_done(struct blot *b);
/* Appends what may go on. -ENOMEM, -EMSGSIZE from `out`. */
int blot_take(struct blot *b, const char *p, size_t n, struct buf *out);
int blot_end(struct blot *b, struct buf *out); /* and what was held back; another text may begin */
/* All of it in place; -ENOMEM: then it is not to be shown. */
int blot_whole(struct blot_words *words, char *p, size_t n);
