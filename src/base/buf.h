/* buf - a growing byte buffer that is born with a limit.
 *
 * Whatever a peer can enlarge goes in one of these: hitting the limit is
 * -EMSGSIZE and changes nothing. `data` is always NUL-terminated after a
 * successful append, for the convenience of text. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "base/cleanup.h"

struct buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max;
};

#define BUF_INIT(max_)     \
    {                      \
        NULL, 0, 0, (max_) \
    }

void buf_done(struct buf *b);
void buf_wipe(struct buf *b);  /* the same, and nothing is left of what was in it */
void buf_clear(struct buf *b); /* len = 0; the memory stays */
int buf_append(struct buf *b, const void *p, size_t n);
int buf_puts(struct buf *b, const char *s);
int buf_printf(struct buf *b, const char *fmt, ...) _printf_(2, 3);

/* Room for n more bytes at data + len; the caller adds to len what it used. */
int buf_reserve(struct buf *b, size_t n);
void buf_drop_front(struct buf *b, size_t n);
char *buf_steal(struct buf *b); /* the caller owns the result; NULL if nothing was appended */
