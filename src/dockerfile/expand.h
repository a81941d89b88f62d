/* expand - variables, quotes and escapes of one word, as docker takes them off.
 *
 * $x, ${x}, ${x:-word}, ${x-word}, ${x:+word}, ${x+word}, ${x:?word}, ${x?word}, and
 * ${x#pattern}, ${x%pattern} with their long forms. Bounded in depth and by the buffer's limit. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

struct expand {
    char escape;
    bool keep_quotes;                                   /* a heredoc: quotes are text */
    const char *(*lookup)(void *ctx, const char *name); /* NULL: it is not set */
    void *ctx;
};

/* Replaces what `out` held. -EINVAL says what is wrong, without the line; -EMSGSIZE. */
int expand_word(const struct expand *x, const char *word, struct buf *out, struct err *err);
/* The same, with each run of spaces outside quotes written as one zero byte: a list of words. */
int expand_list(const struct expand *x, const char *word, struct buf *out, struct err *err);
