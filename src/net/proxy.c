#include "net/proxy.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/hex.h"

static const struct scheme {
    const char *name;
    enum proxy_kind kind;
    bool by_name;
} schemes[] = {
    { "http", PROXY_HTTP, false },
    { "https", PROXY_HTTPS, false },
    { "socks5", PROXY_SOCKS5, false },
    { "socks5h", PROXY_SOCKS5, true },
};

static int wrong(struct err *err, const char *what)
{
    return err_fail(err, FAIL_INVALID_PROXY,
                    "%s: a proxy is written http://HOST:PORT, https://…, socks5://… or "
                    "socks5h://…, with USER:PASSWORD@ before the host if it asks for them",
                    what);
}

/* A user or a password: percent signs decoded, no control characters. */
static int read_word(const char *p, size_t n, char out[PROXY_WORD_SIZE])
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        int c = (unsigned char)p[i];
        if (c == '%') {
            c = hex_percent(p + i, n - i);
            if (c < 0)
                return -EINVAL;
            i += 2;
        }
        if (c < ' ' || c == 0x7f || len + 1 == PROXY_WORD_SIZE)
            return -EINVAL;
        out[len++] = (char)c;
    }
    out[len] = '\0';
    return 0;
}

static int read_login(const char *p, size_t n, struct proxy *up)
{
    const char *colon = memchr(p, ':', n);
    size_t len = colon ? (size_t)(colon - p) : n;
    if (len == 0 || read_word(p, len, up->user) < 0 || strchr(up->user, ':'))
        return -EINVAL; /* a colon in a user would move into the password */
    return colon ? read_word(colon + 1, n - len - 1, up->password) : 0;
}

static int read_port(const char *p, size_t n, uint16_t *ret)
{
    unsigned v = 0;
    if (n == 0 || n > 5 || p[0] == '0')
        return -EINVAL;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return -EINVAL;
        v = v * 10 + (unsigned)(p[i] - '0');
    }
    *ret = (uint16_t)v;
    return v <= UINT16_MAX ? 0 : -EINVAL;
}

static int read_place(const char *p, size_t n, struct proxy *up)
{
    const char *end = n && p[0] == '[' ? memchr(p, ']', n) : NULL;
    const char *colon = end ? end + 1 : n ? memchr(p, ':', n) : NULL;
    if (!colon || colon >= p + n || *colon != ':' ||
        read_port(colon + 1, (size_t)(p + n - colon - 1), &up->port) < 0)
        return -EINVAL;
    if (end) {
        size_t len = (size_t)(end - p - 1);
        return memchr(p + 1, ':', len) ? address_parse(p + 1, len, &up->address) : -EINVAL;
    }
    size_t len = (size_t)(colon - p);
    if (address_parse(p, len, &up->address) == 0)
        return 0;
    return host_canon(p, len, up->host);
}

static const struct scheme *find_scheme(const char *p, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        if (strlen(schemes[i].name) == n && strncasecmp(schemes[i].name, p, n) == 0)
            return &schemes[i];
    return NULL;
}

int proxy_parse(const char *p, size_t n, struct proxy *ret_up, struct err *err)
{
    struct proxy up = { .port = 0 };
    const char *sep = n && n <= PROXY_TEXT_MAX ? memmem(p, n, "://", 3) : NULL;
    const struct scheme *scheme = sep ? find_scheme(p, (size_t)(sep - p)) : NULL;
    if (!scheme)
        return wrong(err, "no scheme that is known");
    up.kind = scheme->kind;
    up.by_name = scheme->by_name;
    const char *at = sep + 3, *end = p + n;
    if (at < end && end[-1] == '/')
        end--;
    /* The last one: a password may have been written with an @ in it. */
    const char *login = memrchr(at, '@', (size_t)(end - at));
    if (login && read_login(at, (size_t)(login - at), &up) < 0)
        return wrong(err, "its user or password cannot be read (percent-encode what is special)");
    at = login ? login + 1 : at;
    if (read_place(at, (size_t)(end - at), &up) < 0)
        return wrong(err, "its host or port cannot be read");
    *ret_up = up;
    return 0;
}

const char *proxy_line(const char *p, size_t n, size_t *ret_rules, size_t *ret_n)
{
    static const char word[] = "proxy ";
    const size_t len = sizeof(word) - 1;
    size_t end = n && p[n - 1] == '\n' ? n - 1 : n;
    const char *before = end ? memrchr(p, '\n', end) : NULL;
    size_t start = before ? (size_t)(before - p) + 1 : 0;
    *ret_rules = n;
    if (end - start < len || memcmp(p + start, word, len) != 0)
        return NULL;
    *ret_rules = start;
    *ret_n = end - start - len;
    return p + start + len;
}

bool proxy_equal(const struct proxy *a, const struct proxy *b)
{
    return a->kind == b->kind && a->by_name == b->by_name && a->port == b->port &&
           address_equal(&a->address, &b->address) && strcmp(a->host, b->host) == 0 &&
           strcmp(a->user, b->user) == 0 && strcmp(a->password, b->password) == 0;
}

int proxy_show(const struct proxy *up, struct buf *out)
{
    static const char *const names[] = { "http", "https", "socks5" };
    char address[ADDRESS_TEXT_SIZE];
    bool v6 = up->address.bits > 32;
    int r = buf_printf(out, "%s%s://", names[up->kind],
                       up->by_name && up->kind == PROXY_SOCKS5 ? "h" : "");
    for (const char *p = up->user; r == 0 && *p; p++)
        r = strchr("@:/%", *p) ? buf_printf(out, "%%%02X", (unsigned char)*p)
                               : buf_append(out, p, 1);
    if (r < 0)
        return r;
    return buf_printf(out, "%s%s%s%s:%u", up->user[0] ? "@" : "", v6 ? "[" : "",
                      up->host[0] ? up->host : address_text(&up->address, address), v6 ? "]" : "",
                      up->port);
}
