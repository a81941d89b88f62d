#include "broker/rewrite.h"

#include <string.h>

#define KEY_DIGITS 40   /* of an issued key, behind its prefix */
#define TOKEN_DIGITS 64 /* of a sandbox's token */

static int put(struct buf *out, struct text t)
{
    return buf_append(out, t.p, t.n);
}

static int put_field(struct buf *out, struct text name, struct text value)
{
    int r = put(out, name);
    if (r >= 0)
        r = buf_append(out, ": ", 2);
    if (r >= 0)
        r = put(out, value);
    return r < 0 ? r : buf_append(out, "\r\n", 2);
}

static bool all_hex(struct text t)
{
    for (size_t i = 0; i < t.n; i++)
        if (!strchr("0123456789abcdef", t.p[i]) || !t.p[i])
            return false;
    return true;
}

/* The shape of a key of ours: letters, '_', 40 hex digits. An application's own keys pass. */
static bool is_key(struct text t)
{
    const char *mark = memrchr(t.p, '_', t.n);
    if (!mark)
        return false;
    struct text digits = { mark + 1, t.n - (size_t)(mark + 1 - t.p) };
    return digits.n == KEY_DIGITS && all_hex(digits);
}

static bool is_credential(const struct head_field *f)
{
    struct text v = f->value;
    if (text_is(f->name, "X-API-Key"))
        return is_key(v);
    if (text_is(f->name, "X-Access-Token"))
        return v.n == TOKEN_DIGITS && all_hex(v);
    if (!text_is(f->name, "Authorization") || !text_starts(v, "Bearer "))
        return false;
    return is_key((struct text){ v.p + 7, v.n - 7 });
}

/* Said by us alone, whatever a client claims. */
static bool is_ours(struct text name)
{
    static const char *const names[] = { "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-For",
                                         "Forwarded", "X-Verified-User-Data" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (text_is(name, names[i]))
            return true;
    return false;
}

static bool stays_behind(const struct head *h, const struct head_field *f,
                         const struct rewrite *how)
{
    if (text_is(f->name, "Host") || is_ours(f->name) || head_is_hop(h, f->name))
        return true;
    bool routing = text_is(f->name, "E2b-Sandbox-Id") || text_is(f->name, "E2b-Sandbox-Port");
    if (!how->inside)
        return routing && how->sandbox;
    return routing || text_is(f->name, "E2b-Traffic-Access-Token") ||
           text_starts(f->name, "X-Warren-") || is_credential(f);
}

static int put_line(const struct head *h, const struct rewrite *how, struct buf *out)
{
    struct text target = h->target;
    size_t n = how->strip ? strlen(how->strip) : 0;
    if (n > 0 && text_starts(target, how->strip) && target.n > n && target.p[n] == '/') {
        target.p += n;
        target.n -= n;
    }
    int r = put(out, h->method);
    if (r >= 0)
        r = buf_printf(out, " %s", how->prefix ? how->prefix : "");
    if (r >= 0)
        r = put(out, target);
    if (r >= 0)
        r = buf_printf(out, " HTTP/1.%u\r\nHost: ", h->minor);
    if (r >= 0)
        r = how->host[0] ? buf_puts(out, how->host) : put(out, h->host);
    return r < 0 ? r : buf_append(out, "\r\n", 2);
}

static int put_forwarded(const struct head *h, const struct rewrite *how, struct buf *out)
{
    const struct head_field *before = head_find(h, "X-Forwarded-For");
    int r = buf_puts(out, "X-Forwarded-For: ");
    if (r >= 0 && before) {
        r = put(out, before->value);
        if (r >= 0)
            r = buf_append(out, ", ", 2);
    }
    if (r >= 0)
        r = buf_printf(out, "%s\r\nX-Forwarded-Proto: %s\r\nX-Forwarded-Host: ", how->peer,
                       how->tls ? "https" : "http");
    if (r >= 0)
        r = put(out, h->host);
    return r < 0 ? r : buf_append(out, "\r\n", 2);
}

static int put_connection(const struct head *h, bool keep, struct buf *out)
{
    const struct head_field *upgrade = h->upgrade ? head_find(h, "Upgrade") : NULL;
    int r = 0;
    if (h->body == BODY_CHUNKED)
        r = buf_puts(out, "Transfer-Encoding: chunked\r\n");
    if (r >= 0 && upgrade) {
        r = buf_puts(out, "Connection: Upgrade\r\nUpgrade: ");
        if (r >= 0)
            r = put(out, upgrade->value);
        return r < 0 ? r : buf_append(out, "\r\n\r\n", 4);
    }
    if (r >= 0)
        r = buf_puts(out, keep ? "\r\n" : "Connection: close\r\n\r\n");
    return r;
}

int rewrite_request(const struct head *h, const struct rewrite *how, struct buf *out)
{
    int r = put_line(h, how, out);
    for (size_t i = 0; i < h->nfields && r >= 0; i++)
        if (!stays_behind(h, &h->fields[i], how))
            r = put_field(out, h->fields[i].name, h->fields[i].value);
    if (r >= 0)
        r = put_forwarded(h, how, out);
    if (r >= 0 && how->sandbox)
        r = buf_printf(out, "E2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: %u\r\n", how->sandbox,
                       how->port);
    return r < 0 ? r : put_connection(h, h->minor == 1, out);
}

int rewrite_answer(const struct head *h, bool keep, struct buf *out)
{
    int r = buf_printf(out, "HTTP/1.1 %03u ", h->status);
    if (r >= 0)
        r = put(out, h->reason);
    if (r >= 0)
        r = buf_append(out, "\r\n", 2);
    for (size_t i = 0; i < h->nfields && r >= 0; i++)
        if (!head_is_hop(h, h->fields[i].name))
            r = put_field(out, h->fields[i].name, h->fields[i].value);
    if (r >= 0 && h->status < 200 && h->status != 101)
        return buf_append(out, "\r\n", 2);
    return r < 0 ? r : put_connection(h, keep, out);
}
