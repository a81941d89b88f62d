/* xmem - memory for a short-lived program: there, or the end of it.
 *
 * A command that cannot get a few kilobytes has nothing better to do than to say so
 * and stop, so its code need not carry that case. Only for sizes we choose ourselves;
 * what a peer can enlarge goes in a struct buf. */
#pragma once
#include <stddef.h>

#include "base/buf.h"
#include "base/cleanup.h"

void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) _printf_(1, 2);
void xputs(struct buf *b, const char *s); /* buf_puts that cannot fail */
void xputn(struct buf *b, const char *p, size_t n);
