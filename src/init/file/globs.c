#include "init/file/globs.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define EXPANDED_MAX 1024 /* alternatives of all patterns together */

static int fold(char c, bool icase)
{
    return icase ? tolower((unsigned char)c) : (unsigned char)c;
}

/* What stands in brackets at p, against c. Moves p behind it; where there is no end, it is a plain
 * bracket. */
static bool match_set(const char **p, char c, bool icase)
{
    const char *at = *p + 1;
    bool negated = *at == '!' || *at == '^', found = false, first = true;
    int x = fold(c, icase);
    at += negated;
    for (; *at && (*at != ']' || first); at++, first = false) {
        if (*at == '\\' && at[1])
            at++;
        int low = fold(*at, icase), high = low;
        if (at[1] == '-' && at[2] && at[2] != ']') {
            high = fold(at[2], icase);
            at += 2;
        }
        found = found || (x >= low && x <= high);
    }
    if (*at != ']') {
        (*p)++;
        return c == '[';
    }
    *p = at + 1;
    return found != negated;
}

/* One element that is not a star against one character; moves p behind the element. */
static bool match_one(const char **p, char c, bool icase)
{
    switch (**p) {
    case '?': (*p)++; return c != '/';
    case '[': return match_set(p, c, icase) && c != '/';
    case '\\':
        if ((*p)[1])
            (*p)++;
        break;
    default: break;
    }
    return fold(*(*p)++, icase) == fold(c, icase);
}

/* Where a double star may end next; NULL: nowhere. */
static const char *go_on(const char *t, bool whole)
{
    if (!whole)
        return *t ? t + 1 : NULL;
    const char *slash = strchr(t, '/');
    return slash ? slash + 1 : NULL;
}

/* The classic walk with a place to go back to, twice: for the last star, which stops at a slash,
 * and for the last double one, which does not. Going back further is never needed. */
bool globs_match_one(const char *p, const char *t, bool icase)
{
    const char *star = NULL, *star_t = NULL, *twin = NULL, *twin_t = NULL;
    bool whole = false;
    for (;;) {
        if (p[0] == '*' && p[1] == '*') {
            while (*p == '*')
                p++;
            whole = *p == '/'; /* "**" and its slash are any number of whole names, none too */
            p += whole;
            twin = p;
            twin_t = t;
            star = NULL;
            continue;
        }
        if (*p == '*') {
            star = ++p;
            star_t = t;
            continue;
        }
        if (*t == '\0' && *p == '\0')
            return true;
        if (*t && *p && match_one(&p, *t, icase)) {
            t++;
            continue;
        }
        if (star && *star_t && *star_t != '/') {
            p = star;
            t = ++star_t;
        } else {
            twin_t = twin ? go_on(twin_t, whole) : NULL;
            if (!twin_t)
                return false;
            p = twin;
            t = twin_t;
            star = NULL;
        }
    }
}

/* ---- braces ---- */

static int keep(struct globs *g, char *pattern)
{
    if (g->n == EXPANDED_MAX) {
        free(pattern);
        return -EINVAL;
    }
    if ((g->n & (g->n - 1)) == 0) {
        char **more = realloc(g->patterns, (g->n ? g->n * 2 : 1) * sizeof(*more));
        if (!more) {
            free(pattern);
            return -ENOMEM;
        }
        g->patterns = more;
    }
    g->patterns[g->n++] = pattern;
    return 0;
}

/* The end of the brace that opens at p; NULL: there is none. */
static const char *brace_end(const char *p)
{
    int depth = 0;
    for (; *p; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (*p == '{')
            depth++;
        else if (*p == '}' && --depth == 0)
            return p;
    }
    return NULL;
}

static const char *find_brace(const char *p)
{
    for (; *p; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (*p == '{')
            return p;
    }
    return NULL;
}

/* The comma behind an alternative, or the brace's end. */
static const char *alternative_end(const char *p, const char *close)
{
    int nested = 0;
    for (; p < close; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (*p == '{')
            nested++;
        else if (*p == '}')
            nested--;
        else if (*p == ',' && nested == 0)
            break;
    }
    return p;
}

/* Takes the pattern. Each round replaces the first brace by its alternatives, one pattern each; as
 * every one of them has a brace less, and their number is bounded, it ends. */
static int expand(struct globs *g, char *pattern, int depth)
{
    _cleanup_free_ char *own = pattern;
    const char *open = find_brace(pattern), *close = open ? brace_end(open) : NULL;
    if (!close)
        return keep(g, take_ptr(own));
    if (depth == 0)
        return -EINVAL;
    const char *from = open + 1;
    for (;;) {
        char *one;
        const char *end = alternative_end(from, close);
        if (asprintf(&one, "%.*s%.*s%s", (int)(open - pattern), pattern, (int)(end - from), from,
                     close + 1) < 0)
            return -ENOMEM;
        int r = expand(g, one, depth - 1);
        if (r < 0)
            return r;
        if (end >= close)
            return 0;
        from = end + 1;
    }
}

int globs_init(struct globs *g, const char *const *patterns, size_t n)
{
    int r = 0;
    *g = (struct globs){ 0 };
    for (size_t i = 0; r == 0 && i < n; i++) {
        char *copy = strdup(patterns[i]);
        r = copy ? expand(g, copy, 16) : -ENOMEM;
    }
    if (r < 0)
        globs_done(g);
    return r;
}

void globs_done(struct globs *g)
{
    for (size_t i = 0; i < g->n; i++)
        free(g->patterns[i]);
    free(g->patterns);
    *g = (struct globs){ 0 };
}

bool globs_match(const struct globs *g, const char *rel, const char *path, bool icase)
{
    const char *slash = strrchr(rel, '/');
    const char *name = slash ? slash + 1 : rel;
    for (size_t i = 0; i < g->n; i++) {
        const char *p = g->patterns[i];
        const char *text = p[0] == '/' ? path : strchr(p, '/') ? rel : name;
        if (p[0] == '.' && p[1] == '/')
            p += 2;
        if (globs_match_one(p, text, icase))
            return true;
    }
    return g->n == 0;
}
