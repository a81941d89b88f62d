#include "broker/cookie.h"

#include <string.h>

#define OURS "warren_"
#define OURS_SECURE "__Host-warren_"

static struct text trim(struct text t)
{
    while (t.n > 0 && (t.p[0] == ' ' || t.p[0] == '\t')) {
        t.p++;
        t.n--;
    }
    while (t.n > 0 && (t.p[t.n - 1] == ' ' || t.p[t.n - 1] == '\t'))
        t.n--;
    return t;
}

/* The next part up to a ';', without blanks around it; false: there is none. */
static bool next_part(struct text *rest, struct text *ret_part)
{
    if (rest->n == 0)
        return false;
    const char *end = memchr(rest->p, ';', rest->n);
    size_t n = end ? (size_t)(end - rest->p) : rest->n;
    *ret_part = trim((struct text){ rest->p, n });
    n += end ? 1 : 0;
    rest->p += n;
    rest->n -= n;
    return true;
}

static struct text name_of(struct text part)
{
    const char *eq = memchr(part.p, '=', part.n);
    return trim((struct text){ part.p, eq ? (size_t)(eq - part.p) : part.n });
}

/* Names of cookies know capitals, but some servers do not. */
static bool is_ours(struct text name)
{
    return text_starts(name, OURS) || text_starts(name, OURS_SECURE);
}

struct text cookie_find(struct text cookies, const char *name)
{
    struct text part;
    size_t n = strlen(name);
    while (next_part(&cookies, &part))
        if (part.n > n && memcmp(part.p, name, n) == 0 && part.p[n] == '=')
            return (struct text){ part.p + n + 1, part.n - n - 1 };
    return (struct text){ "", 0 };
}

int cookie_strip(struct text cookies, struct buf *out)
{
    struct text part;
    size_t before = out->len;
    int r = 0;
    while (r >= 0 && next_part(&cookies, &part)) {
        if (part.n == 0 || is_ours(name_of(part)))
            continue;
        if (out->len > before)
            r = buf_append(out, "; ", 2);
        if (r >= 0)
            r = buf_append(out, part.p, part.n);
    }
    return r;
}

bool cookie_may_set(struct text set_cookie)
{
    struct text part;
    if (!next_part(&set_cookie, &part))
        return false;
    while (part.n > 0 && part.p[0] == '=') { /* one without a name comes back as its value alone */
        part.p++;
        part.n--;
        part = trim(part);
    }
    return !is_ours(name_of(part));
}

int cookie_confine(struct text set_cookie, struct buf *out)
{
    struct text part;
    bool first = true;
    int r = 0;
    while (r >= 0 && next_part(&set_cookie, &part)) {
        if (!first && text_is(name_of(part), "Domain"))
            continue;
        if (!first)
            r = buf_append(out, "; ", 2);
        if (r >= 0)
            r = buf_append(out, part.p, part.n);
        first = false;
    }
    return r;
}
