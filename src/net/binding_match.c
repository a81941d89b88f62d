/* Which requests a binding is for. */
#include <errno.h>
#include <string.h>

#include "base/hex.h"
#include "net/binding_private.h"
#include "net/host.h"

#define STARS_MAX 8
#define DECODE_ROUNDS 3 /* a server and what stands before it, and one more */

static bool unreserved(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

/* ---- one spelling ---- */

/* Is this segment one that leads elsewhere, for a reader that drops parameters? */
static bool is_dots(const char *p, size_t n)
{
    const char *end = memchr(p, ';', n);
    if (end)
        n = (size_t)(end - p);
    return (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.');
}

static bool has_dots(const char *p, size_t n)
{
    size_t start = 0;
    for (size_t i = 0; i <= n; i++)
        if (i == n || p[i] == '/' || p[i] == '\\') {
            if (is_dots(p + start, i - start))
                return true;
            start = i + 1;
        }
    return false;
}

/* Decodes all there is in place; the new length. */
static size_t decode(char *p, size_t n)
{
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        int c = hex_percent(p + i, n - i);
        p[to++] = c < 0 ? p[i] : (char)c;
        i += c < 0 ? 0 : 2;
    }
    return to;
}

/* Somebody on the way may decode once or twice more than the next: none may see other segments. */
static int check_dots(const struct buf *path)
{
    _cleanup_(buf_done) struct buf again = BUF_INIT(path->max);
    int r = buf_append(&again, path->data, path->len);
    if (r < 0)
        return r;
    for (int i = 0; i <= DECODE_ROUNDS; i++) {
        if (has_dots(again.data, again.len) || memchr(again.data, '\0', again.len))
            return -EBADMSG;
        again.len = decode(again.data, again.len);
    }
    return 0;
}

/* The path in p; a star is itself in a pattern and an ordinary byte in a request. */
static int spell(const char *p, size_t n, bool pattern, struct buf *out)
{
    int r = 0;
    if (n == 0 || p[0] != '/')
        return -EBADMSG;
    for (size_t i = 0; i < n && r == 0; i++) {
        unsigned char c = (unsigned char)p[i];
        int byte = hex_percent(p + i, n - i);
        if (c <= ' ' || c >= 0x7f || c == '\\' || c == '#' || c == '?' || (c == '%' && byte < 0))
            return -EBADMSG;
        if (byte >= 0 && !unreserved(byte))
            r = buf_printf(out, "%%%02X", (unsigned)byte);
        else if (c == '*' && !pattern)
            r = buf_puts(out, "%2A");
        else
            r = buf_append(out, byte < 0 ? &p[i] : &(char){ (char)byte }, 1);
        i += byte < 0 ? 0 : 2;
    }
    return r < 0 ? r : check_dots(out);
}

int binding_path(const char *target, size_t n, struct buf *out, size_t *ret_query)
{
    const char *mark = memchr(target, '?', n);
    size_t len = mark ? (size_t)(mark - target) : n;
    int r = spell(target, len, false, out);
    if (r < 0)
        return -EBADMSG;
    *ret_query = mark ? len + 1 : n;
    return 0;
}

int binding_pattern(const char *p, size_t n, struct buf *out)
{
    size_t stars = 0;
    for (size_t i = 0; i < n; i++)
        stars += p[i] == '*';
    return stars > STARS_MAX ? -EBADMSG : spell(p, n, true, out);
}

/* ---- fitting ---- */

static bool starts(const char *path, const char *what)
{
    return strncmp(path, what, strlen(what)) == 0;
}

/* How far a star may go from here: to the end of its segment, whoever decodes it. */
static bool star_takes(const char *at)
{
    return *at && *at != '/' && !starts(at, "%2F") && !starts(at, "%5C");
}

/* The patterns are short and have few stars; a star within a segment must take something, so that
 * an empty segment is not one. */
static bool fits(const char *pattern, const char *path)
{
    const char *star = NULL, *mark = NULL;
    for (;;) {
        if (*pattern == '*') {
            if (!pattern[1])
                return true;
            if (!star_takes(path))
                return false;
            star = ++pattern;
            mark = ++path;
        } else if (*pattern == *path) {
            if (!*path)
                return true;
            pattern++;
            path++;
        } else if (star && star_takes(mark)) {
            path = ++mark;
            pattern = star;
        } else {
            return false;
        }
    }
}

static bool method_fits(const struct binding *b, const char *p, size_t n)
{
    for (size_t i = 0; i < b->n_methods; i++)
        if (strlen(b->methods[i]) == n && memcmp(b->methods[i], p, n) == 0)
            return true;
    return b->n_methods == 0;
}

static bool is(const char *p, size_t n, const char *text)
{
    return strlen(text) == n && memcmp(p, text, n) == 0;
}

static bool ends(const char *path, const char *what)
{
    size_t n = strlen(path), m = strlen(what);
    return n > m && strcmp(path + n - m, what) == 0;
}

/* What a git client of our days asks a server, and nothing that pages or other interfaces are. */
static bool git_fits(const struct binding_request *q, const char *path, size_t query)
{
    const char *asked = q->target + query;
    size_t n = q->n_target - query;
    if (is(q->method, q->n_method, "GET"))
        return ends(path, "/info/refs") && (is(asked, n, "service=git-upload-pack") ||
                                            is(asked, n, "service=git-receive-pack"));
    return is(q->method, q->n_method, "POST") && n == 0 &&
           (ends(path, "/git-upload-pack") || ends(path, "/git-receive-pack"));
}

static bool place_fits(const struct binding *b, const struct binding_request *q)
{
    if (!q->host)
        return b->name && q->name && strcmp(b->name, q->name) == 0;
    return b->transparent && b->port == q->port && host_matches(b->host, q->host);
}

int bindings_match(const struct bindings *bs, const struct binding_request *q,
                   const struct binding *ret_fits[BINDINGS_MAX])
{
    _cleanup_(buf_done) struct buf path = BUF_INIT(3 * q->n_target + 1);
    size_t query = 0;
    int n = 0;
    if (is(q->method, q->n_method, "TRACE") || is(q->method, q->n_method, "CONNECT"))
        return -EBADMSG;
    int r = binding_path(q->target, q->n_target, &path, &query);
    if (r < 0)
        return r;
    for (size_t i = 0; i < bs->n && n < BINDINGS_MAX; i++) {
        const struct binding *b = &bs->items[i];
        if (place_fits(b, q) && method_fits(b, q->method, q->n_method) &&
            fits(b->path, path.data) && (b->as != BINDING_GIT || git_fits(q, path.data, query)))
            ret_fits[n++] = b;
    }
    return n;
}

bool bindings_host(const struct bindings *bs, const char *host, uint16_t port)
{
    for (size_t i = 0; i < bs->n; i++) {
        const struct binding *b = &bs->items[i];
        if (b->transparent && b->port == port && host_matches(b->host, host))
            return true;
    }
    return false;
}

bool bindings_resolve(const struct bindings *bs, const char *host)
{
    for (size_t i = 0; i < bs->n; i++)
        if (bs->items[i].transparent && host_matches(bs->items[i].host, host))
            return true;
    return false;
}

const struct binding *bindings_named(const struct bindings *bs, const char *name)
{
    for (size_t i = 0; i < bs->n; i++)
        if (bs->items[i].name && strcmp(bs->items[i].name, name) == 0)
            return &bs->items[i];
    return NULL;
}
