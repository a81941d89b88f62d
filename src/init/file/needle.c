#include "init/file/needle.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int needle_init(struct needle *d, const char *text, bool regex, bool icase, char *why,
                size_t why_size)
{
    *d = (struct needle){ .text = text, .n = strlen(text), .regex = regex, .icase = icase };
    if (d->n == 0 || (regex && d->n > NEEDLE_REGEX_MAX)) {
        (void)snprintf(why, why_size,
                       d->n ? "text is too long for an expression" : "text is empty");
        return -EINVAL;
    }
    if (regex) {
        int r = regcomp(&d->re, text, REG_EXTENDED | (icase ? REG_ICASE : 0));
        if (r != 0) {
            char what[128];
            (void)regerror(r, &d->re, what, sizeof(what));
            (void)snprintf(why, why_size, "text is not a regular expression: %s", what);
            return r == REG_ESPACE ? -ENOMEM : -EINVAL;
        }
        d->compiled = true;
        return 0;
    }
    if (icase) {
        d->folded = strdup(text);
        if (!d->folded)
            return -ENOMEM;
        for (char *c = d->folded; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        d->text = d->folded;
    }
    return 0;
}

void needle_done(struct needle *d)
{
    if (d->compiled)
        regfree(&d->re);
    free(d->folded);
    d->compiled = false;
    d->folded = NULL;
}

static bool equal_folded(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (tolower((unsigned char)a[i]) != (unsigned char)b[i])
            return false;
    return true;
}

/* By its first character in either case: memchr is quick, and text is mostly not a near miss. Each
 * case is looked for again only when the last place it was found at is passed. */
static const char *find_folded(const struct needle *d, const char *p, size_t n)
{
    const char *end = p + n, *next[2] = { p, p };
    int cases[2] = { (unsigned char)d->text[0], toupper((unsigned char)d->text[0]) };
    bool stale[2] = { true, true };
    while ((size_t)(end - p) >= d->n) {
        for (int i = 0; i < 2; i++)
            if (stale[i])
                next[i] = memchr(p, cases[i], (size_t)(end - p));
        const char *at = !next[0] || (next[1] && next[1] < next[0]) ? next[1] : next[0];
        if (!at || (size_t)(end - at) < d->n)
            return NULL;
        if (equal_folded(at, d->text, d->n))
            return at;
        stale[0] = next[0] == at;
        stale[1] = next[1] == at;
        p = at + 1;
    }
    return NULL;
}

static int find_text(const struct needle *d, const char *p, size_t from, size_t n,
                     struct needle_hit *ret_hit)
{
    const char *at =
        d->icase ? find_folded(d, p + from, n - from) : memmem(p + from, n - from, d->text, d->n);
    if (!at)
        return 0;
    *ret_hit = (struct needle_hit){ .at = (size_t)(at - p), .n = d->n };
    return 1;
}

/* One line p[line..end), from `from` on. A NUL byte in it ends it for the expression. */
static int find_in_line(const struct needle *d, char *p, size_t line, size_t from, size_t end,
                        struct needle_hit *ret_hit)
{
    char kept = p[end];
    p[end] = '\0';
    int flags = from > line ? REG_NOTBOL : 0;
    int r = regexec(&d->re, p + from, NEEDLE_GROUPS, ret_hit->groups, flags);
    p[end] = kept;
    if (r != 0)
        return 0;
    for (int i = 0; i < NEEDLE_GROUPS; i++)
        if (ret_hit->groups[i].rm_so >= 0) {
            ret_hit->groups[i].rm_so += (regoff_t)(from - line);
            ret_hit->groups[i].rm_eo += (regoff_t)(from - line);
        }
    ret_hit->line = line;
    ret_hit->at = line + (size_t)ret_hit->groups[0].rm_so;
    ret_hit->n = (size_t)(ret_hit->groups[0].rm_eo - ret_hit->groups[0].rm_so);
    return 1;
}

int needle_find(const struct needle *d, char *p, size_t from, size_t n, struct needle_hit *ret_hit)
{
    if (!d->regex)
        return find_text(d, p, from, n, ret_hit);
    while (from < n) {
        const char *before = from > 0 ? memrchr(p, '\n', from) : NULL;
        size_t line = before ? (size_t)(before - p) + 1 : 0;
        while (from - line >= NEEDLE_LINE_MAX)
            line += NEEDLE_LINE_MAX;
        const char *newline = memchr(p + from, '\n', n - from);
        size_t end = newline ? (size_t)(newline - p) : n;
        if (end - line > NEEDLE_LINE_MAX)
            end = line + NEEDLE_LINE_MAX;
        if (find_in_line(d, p, line, from, end, ret_hit))
            return 1;
        from = end < n && p[end] == '\n' ? end + 1 : end;
    }
    return 0;
}
