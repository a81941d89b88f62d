#include "broker/proof.h"

#include <errno.h>
#include <string.h>

#include "broker/cookie.h"

#define KEY_DIGITS 40
#define PARAM "warren_token"

bool proof_is_key(struct text t)
{
    const char *mark = memrchr(t.p, '_', t.n);
    size_t digits = mark ? t.n - (size_t)(mark + 1 - t.p) : 0;
    if (digits != KEY_DIGITS)
        return false;
    for (size_t i = 1; i <= digits; i++)
        if (!strchr("0123456789abcdef", mark[i]) || !mark[i])
            return false;
    return true;
}

const char *proof_cookie(bool tls)
{
    return tls ? "__Host-warren_preview" : "warren_preview";
}

static bool copy(struct text from, char out[BROKER_TOKEN_SIZE])
{
    if (from.n == 0 || from.n >= BROKER_TOKEN_SIZE)
        return false;
    memcpy(out, from.p, from.n);
    out[from.n] = '\0';
    return true;
}

/* ---- in a URL ---- */

static const char *query_of(struct text url)
{
    const char *mark = memchr(url.p, '?', url.n);
    return mark ? mark + 1 : url.p + url.n;
}

static size_t param_len(const char *p, const char *end)
{
    const char *mark = memchr(p, '&', (size_t)(end - p));
    return mark ? (size_t)(mark - p) : (size_t)(end - p);
}

static bool is_ours(const char *p, size_t n)
{
    const size_t name = sizeof(PARAM) - 1;
    return n >= name && memcmp(p, PARAM, name) == 0 && (n == name || p[name] == '=');
}

static struct text token_in(struct text url)
{
    const char *end = url.p + url.n;
    for (const char *p = query_of(url); p < end; p++) {
        size_t n = param_len(p, end);
        if (is_ours(p, n) && n > sizeof(PARAM))
            return (struct text){ p + sizeof(PARAM), n - sizeof(PARAM) };
        p += n;
    }
    return (struct text){ "", 0 };
}

bool proof_in_url(struct text url)
{
    const char *end = url.p + url.n;
    for (const char *p = query_of(url); p < end; p++) {
        size_t n = param_len(p, end);
        if (is_ours(p, n))
            return true;
        p += n;
    }
    return false;
}

int proof_cut(struct text url, struct buf *out)
{
    const char *end = url.p + url.n, *query = query_of(url);
    const char *glue = "?";
    int r = buf_append(out, url.p, (size_t)(query - url.p) - (query < end ? 1 : 0));
    for (const char *p = query; r >= 0 && p < end; p++) {
        size_t n = param_len(p, end);
        if (!is_ours(p, n)) {
            r = buf_append(out, glue, 1);
            if (r >= 0)
                r = buf_append(out, p, n);
            glue = "&";
        }
        p += n;
    }
    return r;
}

/* ---- in a head ---- */

static int from_header(const struct head *h, const char *name, char out[BROKER_TOKEN_SIZE])
{
    const struct head_field *f = head_find(h, name);
    if (!f || f->value.n == 0)
        return 0;
    return copy(f->value, out) ? 1 : -EINVAL;
}

static void from_cookies(const struct head *h, bool tls, char out[BROKER_TOKEN_SIZE])
{
    for (size_t i = 0; i < h->nfields && !out[0]; i++)
        if (text_is(h->fields[i].name, "Cookie"))
            (void)copy(cookie_find(h->fields[i].value, proof_cookie(tls)), out);
}

static void find_key(const struct head *h, char out[BROKER_TOKEN_SIZE])
{
    const struct head_field *key = head_find(h, "X-API-Key");
    const struct head_field *bearer = head_find(h, "Authorization");
    if (key && proof_is_key(key->value))
        (void)copy(key->value, out);
    if (out[0] || !bearer || !text_starts(bearer->value, "Bearer "))
        return;
    struct text t = { bearer->value.p + 7, bearer->value.n - 7 };
    if (proof_is_key(t))
        (void)copy(t, out);
}

int proof_find(const struct head *h, enum proof_cookies cookies, struct broker_proof *ret_proof,
               bool *ret_query)
{
    struct broker_proof p = { .token = "" };
    bool query = false;
    int r = from_header(h, "E2b-Traffic-Access-Token", p.token);
    if (r == 0)
        r = from_header(h, "X-Warren-Preview-Token", p.token);
    if (r < 0)
        return r;
    if (!p.token[0])
        query = copy(token_in(h->target), p.token);
    if (!p.token[0] && cookies != PROOF_NO_COOKIE)
        from_cookies(h, cookies == PROOF_COOKIE_TLS, p.token);
    find_key(h, p.key);
    *ret_proof = p;
    *ret_query = query;
    return 0;
}
