#include "base/glob.h"

#include <string.h>

/* The character at p: its code, and in *ret_n its bytes. Bytes that are not UTF-8 are taken one by
 * one, as themselves. */
static unsigned rune(const char *p, size_t *ret_n)
{
    const unsigned char *s = (const unsigned char *)p;
    unsigned c = s[0], code = 0;
    size_t n = c < 0xc2 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 1;
    if (n > 1)
        code = c & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            n = 1;
            break;
        }
        code = code << 6 | (s[i] & 0x3fu);
    }
    *ret_n = n;
    return n > 1 ? code : c;
}

/* One character of a class, perhaps behind a backslash; NULL at the end of the pattern. */
static const char *class_char(const char *p, unsigned *ret_c)
{
    size_t n;
    if (*p == '\\')
        p++;
    if (!*p)
        return NULL;
    *ret_c = rune(p, &n);
    return p + n;
}

/* p is behind the '['; the place behind the ']' or NULL. */
static const char *class_match(const char *p, unsigned c, bool *ret_match)
{
    bool negated = *p == '^', match = false, first = true;
    if (negated)
        p++;
    while (first || *p != ']') {
        unsigned low, high;
        first = false;
        p = class_char(p, &low);
        if (!p)
            return NULL;
        high = low;
        if (*p == '-' && p[1] != ']') {
            p = class_char(p + 1, &high);
            if (!p)
                return NULL;
        }
        match = match || (c >= low && c <= high);
        if (!*p)
            return NULL;
    }
    *ret_match = match != negated;
    return p + 1;
}

/* One item of the pattern, not a star, against one character; the rest of the pattern, or NULL. */
static const char *item_match(const char *p, const char *s, size_t *ret_n)
{
    unsigned c = rune(s, ret_n);
    bool match = false;
    size_t n;
    switch (*p) {
    case '\0': return NULL;
    case '?': return c == '/' ? NULL : p + 1;
    case '[': p = class_match(p + 1, c, &match); return match && c != '/' ? p : NULL;
    case '\\': p += p[1] != '\0'; break;
    default: break;
    }
    return rune(p, &n) == c && n == *ret_n ? p + n : NULL;
}

/* Where to go on when an item does not match: behind a star, which then takes one more. */
struct retry {
    const char *p, *s; /* NULL: there is none */
};

static bool retry_star(struct retry *star, const char **p, const char **s)
{
    if (!star->p || !*star->s || *star->s == '/')
        return false;
    *p = star->p;
    *s = ++star->s;
    return true;
}

/* `**` before a slash takes whole directories only. */
static bool retry_deep(struct retry *deep, bool whole, const char **p, const char **s)
{
    if (!deep->p || !*deep->s)
        return false;
    if (whole) {
        const char *slash = strchr(deep->s, '/');
        if (!slash)
            return false;
        deep->s = slash;
    }
    *p = deep->p;
    *s = ++deep->s;
    return true;
}

bool glob_match(const char *pattern, const char *path, unsigned flags)
{
    const char *p = pattern, *s = path;
    struct retry star = { NULL, NULL }, deep = { NULL, NULL };
    bool whole = false;
    while (*s || *p) {
        if ((flags & GLOB_DEEP) && p[0] == '*' && p[1] == '*') {
            while (*p == '*')
                p++;
            whole = *p == '/';
            p += whole;
            deep = (struct retry){ p, s };
            star.p = NULL; /* what it could still take, `**` can */
            continue;
        }
        if (*p == '*') {
            star = (struct retry){ ++p, s };
            continue;
        }
        size_t n = 0;
        const char *next = *s ? item_match(p, s, &n) : NULL;
        if (next) {
            p = next;
            s += n;
        } else if (!retry_star(&star, &p, &s)) {
            star.p = NULL;
            if (!retry_deep(&deep, whole, &p, &s))
                return false;
        }
    }
    return true;
}

bool glob_valid(const char *pattern)
{
    for (const char *p = pattern; *p;) {
        bool match;
        if (*p == '[') {
            p = class_match(p + 1, 0, &match);
            if (!p)
                return false;
            continue;
        }
        if (*p == '\\' && !*++p)
            return false;
        p++;
    }
    return true;
}

bool glob_magic(const char *pattern)
{
    return strpbrk(pattern, "*?[\\") != NULL;
}
