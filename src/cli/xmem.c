#include "cli/xmem.h"

#include <stdarg.h>
#include <string.h>

static _Noreturn void die(void)
{
    static const char text[] = "warren: out of memory\n";
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    exit(125);
}

void *xcalloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (!p)
        die();
    return p;
}

void *xrealloc(void *p, size_t n, size_t size)
{
    void *q = reallocarray(p, n ? n : 1, size);
    if (!q)
        die();
    return q;
}

char *xstrndup(const char *s, size_t n)
{
    char *p = strndup(s, n);
    if (!p)
        die();
    return p;
}

char *xstrdup(const char *s)
{
    return xstrndup(s, strlen(s));
}

char *xasprintf(const char *fmt, ...)
{
    char *p = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&p, fmt, ap);
    va_end(ap);
    if (n < 0)
        die();
    return p;
}

void xputn(struct buf *b, const char *p, size_t n)
{
    if (buf_append(b, p, n) < 0)
        die();
}

void xputs(struct buf *b, const char *s)
{
    xputn(b, s, strlen(s));
}
