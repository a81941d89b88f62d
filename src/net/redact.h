/* redact - replaces secrets in a stream of bytes with stars, however the stream is cut into
 * pieces.
 *
 * Lengths stay as they were, so a promised Content-Length stays true. redact_forms.c lists the
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

#define REDACT_WORD_MAX (16 * 1024)
#define REDACT_NODES_MAX (640 * 1024) /* characters of all forms of all secrets, 32 bytes each */

/* The texts to find. Streams share them, and each stream keeps them alive. */
struct redact_words;

struct redact_words *redact_words_new(void); /* NULL: no memory */
/* -E2BIG: it is too long, or all are; -ENOMEM. An empty one is no secret. Not once a stream has begun. */
int redact_words_add(struct redact_words *w, const char *p, size_t n);
/* One of which the first bytes may be known: a user's name. */
int redact_words_add_behind(struct redact_words *w, const char *p, size_t n, size_t known);
struct redact_words *redact_words_ref(struct redact_words *w); /* NULL stays NULL */
void redact_words_unref(struct redact_words *w);               /* wiped with the last */
DEFINE_FREEP(struct redact_words *, redact_words_unref)

#define REDACT_TOKEN_MAX 10 /* "&#x0041;" */

/* The views of a stream. Each has a place in a trie, and knows where in the stream its last
 * characters began. */
enum redact_view {
    REDACT_PLAIN,   /* as they are */
    REDACT_LOOSE,   /* in lower case, without separators between characters */
    REDACT_DECODED, /* with escapes decoded */
    REDACT_PACKED,  /* decoded, base64 in one alphabet without line breaks */
    REDACT_FOLDED,  /* decoded and loose */
    REDACT_TWICE,   /* decoded twice and loose */
    REDACT_VIEWS,
};

struct trie;

struct redact_reader {
    const struct trie *trie;
    uint32_t at; /* a node of the trie */
    uint8_t skipped, lines;
    uint64_t n; /* characters read */
    uint64_t *from;
};

/* Characters that may become an escape, and the bytes [from, to) of the stream that each was
 * read from. */
struct redact_escape {
    char token[REDACT_TOKEN_MAX];
    uint64_t from[REDACT_TOKEN_MAX], to[REDACT_TOKEN_MAX];
    unsigned n;
};

struct redact {
    struct redact_words *words; /* NULL: nothing is looked for */
    struct buf held;            /* read and not let go */
    char *text;                 /* while bytes are taken: those, with what was held before them */
    uint64_t base;              /* where in the stream they begin */
    struct redact_reader readers[REDACT_VIEWS];
    struct redact_escape once, twice;
    uint64_t *rings; /* the memory behind all readers' `from` */
};

int redact_init(struct redact *b, struct redact_words *words); /* -ENOMEM; words may be NULL */
void redact_done(struct redact *b);
/* Appends what may go on. -ENOMEM, -EMSGSIZE from `out`. */
int redact_take(struct redact *b, const char *p, size_t n, struct buf *out);
int redact_end(struct redact *b,
               struct buf *out); /* and what was held back; another text may begin */
/* All of it in place; -ENOMEM: then it is not to be shown. */
int redact_whole(struct redact_words *words, char *p, size_t n);
