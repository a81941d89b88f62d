#include "broker/rewrite.h"

#include <string.h>

#include "broker/cookie.h"
#include "broker/proof.h"
#include "net/preview.h"

#define TOKEN_DIGITS 64 /* of a sandbox's token */

static bool all_hex(struct text t)
{
    for (size_t i = 0; i < t.n; i++)
        if (!strchr("0123456789abcdef", t.p[i]) || !t.p[i])
            return false;
    return true;
}

static bool is_credential(const struct head_field *f)
{
    struct text v = f->value;
    if (text_is(f->name, "X-API-Key"))
        return proof_is_key(v);
    if (text_is(f->name, "X-Access-Token"))
        return v.n == TOKEN_DIGITS && all_hex(v);
    if (!text_is(f->name, "Authorization") || !text_starts(v, "Bearer "))
        return false;
    return proof_is_key((struct text){ v.p + 7, v.n - 7 });
}

/* More HTTP, in another form: its fields nobody would have looked at. */
static bool is_http(struct text protocols)
{
    bool first = true; /* byte of an entry */
    for (size_t i = 0; i < protocols.n; i++) {
        struct text at = { protocols.p + i, protocols.n - i };
        if (first && (text_starts(at, "h2") || text_starts(at, "http/") || text_starts(at, "tls/")))
            return true;
        first = protocols.p[i] == ',' || protocols.p[i] == ' ' || protocols.p[i] == '\t';
    }
    return false;
}

bool rewrite_upgrades(const struct head *h)
{
    const struct head_field *to = h->upgrade ? head_find(h, "Upgrade") : NULL;
    return to && h->body == BODY_EMPTY && !is_http(to->value);
}

static bool stays_behind(const struct head *h, const struct head_field *f,
                         const struct rewrite *how)
{
    if (text_is(f->name, "Host") || preview_own_field(f->name.p, f->name.n) ||
        head_is_hop(h, f->name))
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
    int r = text_put(out, h->method);
    if (r >= 0)
        r = buf_printf(out, " %s", how->prefix ? how->prefix : "");
    if (r >= 0)
        r = how->inside && proof_in_url(target) ? proof_cut(target, out) : text_put(out, target);
    if (r >= 0)
        r = buf_printf(out, " HTTP/1.%u\r\nHost: ", h->minor);
    if (r >= 0)
        r = how->host[0] ? buf_puts(out, how->host) : text_put(out, h->host);
    return r < 0 ? r : buf_append(out, "\r\n", 2);
}

static int put_name(struct buf *out, struct text name)
{
    int r = text_put(out, name);
    return r < 0 ? r : buf_append(out, ": ", 2);
}

/* Ours among others are left out; without others so is the field. */
static int put_cookies(const struct head_field *f, struct buf *out)
{
    size_t before = out->len;
    int r = put_name(out, f->name);
    size_t empty = out->len;
    if (r >= 0)
        r = cookie_strip(f->value, out);
    if (r >= 0 && out->len == empty) {
        out->len = before;
        return 0;
    }
    return r < 0 ? r : buf_append(out, "\r\n", 2);
}

static int put_referer(const struct head_field *f, struct buf *out)
{
    int r = put_name(out, f->name);
    if (r >= 0)
        r = proof_cut(f->value, out);
    return r < 0 ? r : buf_append(out, "\r\n", 2);
}

static int put_request_field(const struct head_field *f, const struct rewrite *how, struct buf *out)
{
    if (how->inside && text_is(f->name, "Cookie"))
        return put_cookies(f, out);
    if (how->inside && text_is(f->name, "Referer") && proof_in_url(f->value))
        return put_referer(f, out);
    return head_put_field(out, f->name, f->value);
}

static int put_forwarded(const struct head *h, const struct rewrite *how, struct buf *out)
{
    const struct head_field *before = how->near ? head_find(h, "X-Forwarded-For") : NULL;
    int r = buf_puts(out, "X-Forwarded-For: ");
    if (r >= 0 && before) {
        r = text_put(out, before->value);
        if (r >= 0)
            r = buf_append(out, ", ", 2);
    }
    if (r >= 0)
        r = buf_printf(out, "%s\r\nX-Forwarded-Proto: %s\r\nX-Forwarded-Host: ", how->peer,
                       how->tls ? "https" : "http");
    if (r >= 0)
        r = text_put(out, h->host);
    return r < 0 ? r : buf_append(out, "\r\n", 2);
}

static int put_connection(const struct head *h, bool keep, struct buf *out)
{
    const struct head_field *upgrade = rewrite_upgrades(h) ? head_find(h, "Upgrade") : NULL;
    int r = 0;
    if (h->body == BODY_CHUNKED)
        r = buf_puts(out, "Transfer-Encoding: chunked\r\n");
    if (r >= 0 && upgrade) {
        r = buf_puts(out, "Connection: Upgrade\r\nUpgrade: ");
        if (r >= 0)
            r = text_put(out, upgrade->value);
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
            r = put_request_field(&h->fields[i], how, out);
    if (r >= 0)
        r = put_forwarded(h, how, out);
    if (r >= 0 && how->data && how->data[0])
        r = buf_printf(out, "X-Verified-User-Data: %s\r\n", how->data);
    if (r >= 0 && how->sandbox)
        r = buf_printf(out, "E2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: %u\r\n", how->sandbox,
                       how->port);
    /* A server that leaves a body unread would take it for the next request, with fields of a client's choice. */
    bool last = how->inside && h->body != BODY_EMPTY;
    return r < 0 ? r : put_connection(h, h->minor == 1 && !last, out);
}

/* What a server inside says to the client's browser about more than itself. */
static int put_answer_field(const struct head_field *f, struct buf *out)
{
    if (text_is(f->name, "Clear-Site-Data"))
        return 0; /* its "cookies" are those of every name below the domain */
    if (!text_is(f->name, "Set-Cookie"))
        return head_put_field(out, f->name, f->value);
    if (!cookie_may_set(f->value))
        return 0;
    int r = put_name(out, f->name);
    if (r >= 0)
        r = cookie_confine(f->value, out);
    return r < 0 ? r : buf_append(out, "\r\n", 2);
}

/* These have no body, and a reader behind us that believed a length there would take the next answer for
 * it. */
static bool may_have_length(const struct head *h)
{
    return h->status >= 200 && h->status != 204;
}

int rewrite_answer(const struct head *h, bool inside, bool keep, struct buf *out)
{
    int r = buf_printf(out, "HTTP/1.1 %03u ", h->status);
    if (r >= 0)
        r = text_put(out, h->reason);
    if (r >= 0)
        r = buf_append(out, "\r\n", 2);
    for (size_t i = 0; i < h->nfields && r >= 0; i++) {
        const struct head_field *f = &h->fields[i];
        if (head_is_hop(h, f->name) || (!may_have_length(h) && text_is(f->name, "Content-Length")))
            continue;
        r = inside ? put_answer_field(f, out) : head_put_field(out, f->name, f->value);
    }
    if (r >= 0 && h->status < 200 && h->status != 101)
        return buf_append(out, "\r\n", 2);
    return r < 0 ? r : put_connection(h, keep, out);
}
