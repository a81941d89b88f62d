#include "broker/credential.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/hex.h"
#include "net/sigv4.h"

#define HTTPS_PORT 443

static struct text text_of(const char *s)
{
    return (struct text){ s, strlen(s) };
}

/* ---- what is set, and by whom ---- */

/* The field that carries it; NULL: it is in the query. */
static const char *field_of(const struct binding *b)
{
    switch (b->as) {
    case BINDING_HEADER: return b->header;
    case BINDING_QUERY: return NULL;
    case BINDING_BEARER:
    case BINDING_BASIC:
    case BINDING_GIT:
    case BINDING_SIGV4: break;
    }
    return "Authorization";
}

static bool sets_same(const struct binding *a, const struct binding *b)
{
    const char *left = field_of(a), *right = field_of(b);
    if (left && right)
        return strcasecmp(left, right) == 0;
    return !left && !right && strcmp(a->query, b->query) == 0;
}

bool credential_puts(const struct credential *c, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (sets_same(c->fits[j], c->fits[i]))
            return false;
    return true;
}

static const struct binding *signer(const struct credential *c)
{
    for (size_t i = 0; i < c->n_fits; i++)
        if (c->fits[i]->as == BINDING_SIGV4 && credential_puts(c, i))
            return c->fits[i];
    return NULL;
}

bool credential_gathers(const struct credential *c)
{
    const struct binding *b = signer(c);
    return b && !sigv4_is_s3(b->service) && c->head->body != BODY_EMPTY;
}

/* ---- what stays behind ---- */

static bool listed(struct text name, const char *const *names)
{
    for (; *names; names++)
        if (text_reads_as(name, *names))
            return true;
    return false;
}

static bool is_set(const struct credential *c, struct text name)
{
    for (size_t i = 0; i < c->n_fits; i++) {
        const char *field = field_of(c->fits[i]);
        if (field && text_reads_as(name, field))
            return true;
    }
    return false;
}

static bool stays_behind(const struct credential *c, const struct head_field *f)
{
    static const char *const elsewhere[] = { "X-HTTP-Method",     "X-HTTP-Method-Override",
                                             "X-Method-Override", "X-Original-URL",
                                             "X-Rewrite-URL",     NULL };
    static const char *const hiding[] = { "Accept-Encoding", "Range", "If-Range",
                                          "Sec-WebSocket-Extensions", NULL };
    static const char *const signing[] = { "X-Amz-Date", "X-Amz-Content-Sha256",
                                           "X-Amz-Security-Token", NULL };
    if (text_is(f->name, "Host") || head_is_hop(c->head, f->name) || is_set(c, f->name))
        return true;
    if (c->n_fits && listed(f->name, elsewhere))
        return true;
    if (c->hides && listed(f->name, hiding))
        return true;
    if (c->hash && (text_is(f->name, "Content-Length") || text_is(f->name, "Expect")))
        return true;
    return signer(c) && listed(f->name, signing);
}

/* ---- values ---- */

int credential_percent(struct buf *out, const char *p, size_t n)
{
    int r = 0;
    for (size_t i = 0; i < n && r >= 0; i++) {
        unsigned char c = (unsigned char)p[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                     (c && strchr("-._~", c));
        r = plain ? buf_append(out, &c, 1) : buf_printf(out, "%%%02X", c);
    }
    return r;
}

static int put_basic(struct buf *out, const struct binding *b)
{
    _cleanup_(buf_wipe) struct buf pair = BUF_INIT(CREDENTIAL_HEAD_MAX);
    int r = buf_printf(&pair, "%s:", b->user ? b->user : "");
    if (r >= 0)
        r = buf_append(&pair, b->value, b->n_value);
    if (r >= 0)
        r = buf_puts(out, "Authorization: Basic ");
    if (r >= 0)
        r = base64_encode(pair.data, pair.len, out);
    return r < 0 ? r : buf_append(out, "\r\n", 2);
}

/* The value in the place of "{}"; a format without it is the value itself. */
static int put_header(struct buf *out, const struct binding *b)
{
    const char *format = b->format ? b->format : "{}";
    const char *place = strstr(format, "{}");
    int r = buf_printf(out, "%s: %.*s", b->header, place ? (int)(place - format) : 0, format);
    if (r >= 0)
        r = buf_append(out, b->value, b->n_value);
    if (r >= 0 && place)
        r = buf_puts(out, place + 2);
    return r < 0 ? r : buf_append(out, "\r\n", 2);
}

static int put_credential(struct buf *out, const struct binding *b)
{
    int r;
    switch (b->as) {
    case BINDING_HEADER: return put_header(out, b);
    case BINDING_BASIC:
    case BINDING_GIT: return put_basic(out, b);
    case BINDING_BEARER:
        r = buf_puts(out, "Authorization: Bearer ");
        if (r >= 0)
            r = buf_append(out, b->value, b->n_value);
        return r < 0 ? r : buf_append(out, "\r\n", 2);
    case BINDING_QUERY: /* in the target */
    case BINDING_SIGV4: return 0;
    }
    return -EINVAL;
}

/* ---- the target ---- */

/* A parameter's name, however it is encoded, is this one. */
static bool names_parameter(struct text t, const char *name)
{
    size_t at = 0;
    for (size_t i = 0; i < t.n; i++) {
        int c = hex_percent(t.p + i, t.n - i);
        if (c < 0)
            c = (unsigned char)t.p[i];
        else
            i += 2;
        if (c != (unsigned char)name[at] || !name[at++])
            return false;
    }
    return !name[at];
}

static bool parameter_is_set(const struct credential *c, struct text one)
{
    const char *is = memchr(one.p, '=', one.n);
    struct text name = { one.p, is ? (size_t)(is - one.p) : one.n };
    for (size_t i = 0; i < c->n_fits; i++)
        if (c->fits[i]->as == BINDING_QUERY && names_parameter(name, c->fits[i]->query))
            return true;
    return false;
}

/* What the client asked for, without what bindings set. Some servers part parameters at ';' too. */
static int put_parameters(struct buf *out, const struct credential *c, struct text query, bool *any)
{
    char sep = '&';
    int r = 0;
    while (query.n && r >= 0) {
        size_t n = 0;
        while (n < query.n && query.p[n] != '&' && query.p[n] != ';')
            n++;
        struct text one = { query.p, n };
        if (!parameter_is_set(c, one)) {
            r = buf_append(out, *any ? &sep : "?", 1);
            if (r >= 0)
                r = text_put(out, one);
            *any = true;
        }
        sep = n < query.n ? query.p[n] : '&';
        n += n < query.n;
        query.p += n;
        query.n -= n;
    }
    return r;
}

static int put_target(struct buf *out, const struct credential *c)
{
    struct text t = c->head->target;
    const char *mark = memchr(t.p, '?', t.n);
    bool asks = false;
    for (size_t i = 0; i < c->n_fits; i++)
        asks |= c->fits[i]->as == BINDING_QUERY;
    if (!asks)
        return text_put(out, t);
    struct text path = { t.p, mark ? (size_t)(mark - t.p) : t.n };
    struct text query = { path.p + path.n + (mark != NULL), mark ? t.n - path.n - 1 : 0 };
    bool any = false;
    int r = text_put(out, path);
    if (r >= 0)
        r = put_parameters(out, c, query, &any);
    for (size_t i = 0; i < c->n_fits && r >= 0; i++) {
        const struct binding *b = c->fits[i];
        if (b->as != BINDING_QUERY || !credential_puts(c, i))
            continue;
        r = buf_append(out, any ? "&" : "?", 1);
        if (r >= 0)
            r = credential_percent(out, b->query, strlen(b->query));
        if (r >= 0)
            r = buf_append(out, "=", 1);
        if (r >= 0)
            r = credential_percent(out, b->value, b->n_value);
        any = true;
    }
    return r;
}

/* ---- signatures ---- */

/* What S3 is told of a body that is not read before it is sent. A client's own hash is as good as one of
 * ours; a body in pieces that were signed with another key is not. */
static int payload_of(const struct credential *c, const char **ret_payload,
                      char own[SIGV4_HASH_SIZE])
{
    const struct head_field *said = head_find(c->head, "X-Amz-Content-Sha256");
    *ret_payload = own;
    if (c->hash) {
        (void)snprintf(own, SIGV4_HASH_SIZE, "%s", c->hash);
    } else if (c->head->body == BODY_EMPTY) {
        sigv4_hash("", 0, own);
    } else if (said && text_starts(said->value, "STREAMING-AWS4")) {
        return -EPROTONOSUPPORT;
    } else if (said && said->value.n < SIGV4_HASH_SIZE) {
        memcpy(own, said->value.p, said->value.n);
        own[said->value.n] = '\0';
    } else {
        *ret_payload = SIGV4_UNSIGNED;
    }
    return 0;
}

/* What is signed beside the fields that signing itself brings. */
static bool is_signed(const struct credential *c, const struct head_field *f)
{
    return !stays_behind(c, f) &&
           (text_starts(f->name, "X-Amz-") || text_is(f->name, "Content-Type"));
}

static int put_signature(struct buf *out, const struct credential *c, struct text target,
                         struct text host)
{
    const struct binding *b = signer(c);
    struct sigv4_key key = { b->access_key, b->region, b->service, b->value, b->n_value };
    struct head_field fields[SIGV4_FIELDS_MAX];
    char date[SIGV4_DATE_SIZE], own[SIGV4_HASH_SIZE];
    const char *payload = NULL;
    size_t n = 0;
    int r = payload_of(c, &payload, own);
    if (r < 0)
        return r;
    sigv4_date(c->unix_s, date);
    fields[n++] = (struct head_field){ text_of("Host"), host };
    fields[n++] = (struct head_field){ text_of("X-Amz-Date"), text_of(date) };
    if (sigv4_is_s3(b->service))
        fields[n++] = (struct head_field){ text_of("X-Amz-Content-Sha256"), text_of(payload) };
    for (size_t i = 1; i < n && r >= 0; i++)
        r = head_put_field(out, fields[i].name, fields[i].value);
    for (size_t i = 0; i < c->head->nfields; i++) {
        if (!is_signed(c, &c->head->fields[i]))
            continue;
        if (n == SIGV4_FIELDS_MAX)
            return -E2BIG;
        fields[n++] = c->head->fields[i];
    }
    struct sigv4_request q = { c->head->method, target, fields, n, date, payload };
    if (r >= 0)
        r = buf_puts(out, "Authorization: ");
    if (r >= 0)
        r = sigv4_sign(&key, &q, out);
    return r < 0 ? r : buf_append(out, "\r\n", 2);
}

/* ---- all of it ---- */

bool credential_is_last(const struct head *h)
{
    return h->body != BODY_EMPTY && !text_is(h->method, "POST") && !text_is(h->method, "PUT") &&
           !text_is(h->method, "PATCH");
}

static int put_connection(struct buf *out, const struct credential *c)
{
    const struct head *h = c->head;
    bool last = credential_is_last(h);
    int r = last ? buf_puts(out, "Connection: close\r\n") : 0;
    if (r < 0)
        return r;
    if (c->hash)
        return buf_printf(out, "Content-Length: %llu\r\n\r\n", (unsigned long long)c->length);
    if (h->body == BODY_CHUNKED)
        return buf_puts(out, "Transfer-Encoding: chunked\r\n\r\n");
    /* Of what may follow HTTP on a connection, only this can be looked through. */
    const struct head_field *upgrade = h->upgrade && !last ? head_find(h, "Upgrade") : NULL;
    if (upgrade && text_is(upgrade->value, "websocket"))
        return buf_puts(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    return buf_append(out, "\r\n", 2);
}

static int put_fields(struct buf *out, const struct credential *c)
{
    int r = 0;
    for (size_t i = 0; i < c->head->nfields && r >= 0; i++)
        if (!stays_behind(c, &c->head->fields[i]))
            r = head_put_field(out, c->head->fields[i].name, c->head->fields[i].value);
    if (r >= 0 && c->hides)
        r = buf_puts(out, "Accept-Encoding: identity\r\n");
    for (size_t i = 0; i < c->n_fits && r >= 0; i++)
        if (credential_puts(c, i))
            r = put_credential(out, c->fits[i]);
    return r;
}

int credential_write(const struct credential *c, struct buf *out)
{
    size_t from = out->len;
    for (size_t i = 0; i < c->n_fits; i++)
        if (!c->fits[i]->value ||
            !binding_carries(c->fits[i], c->fits[i]->value, c->fits[i]->n_value))
            return -ENODATA;
    int r = text_put(out, c->head->method);
    if (r >= 0)
        r = buf_append(out, " ", 1);
    size_t target = out->len - from;
    if (r >= 0)
        r = put_target(out, c);
    size_t target_n = out->len - from - target;
    if (r >= 0)
        r = buf_puts(out, " HTTP/1.1\r\nHost: ");
    size_t host = out->len - from;
    if (r >= 0)
        r = c->port == HTTPS_PORT ? buf_puts(out, c->host)
                                  : buf_printf(out, "%s:%u", c->host, c->port);
    size_t host_n = out->len - from - host;
    if (r >= 0)
        r = buf_append(out, "\r\n", 2);
    if (r >= 0)
        r = put_fields(out, c);
    if (r >= 0 && signer(c)) {
        /* Copies: the buffer that they are in grows. */
        _cleanup_free_ char *t = strndup(out->data + from + target, target_n);
        _cleanup_free_ char *at = strndup(out->data + from + host, host_n);
        r = t && at
                ? put_signature(out, c, (struct text){ t, target_n }, (struct text){ at, host_n })
                : -ENOMEM;
    }
    return r < 0 ? r : put_connection(out, c);
}
