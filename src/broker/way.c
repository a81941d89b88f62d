#include "broker/way.h"

#include <errno.h>
#include <string.h>

#include "net/preview.h"

#define ENVD_PORT 49983
#define INTERPRETER_PORT 49999
#define MOUNT "/e2b"

static bool is_answered_here(unsigned port)
{
    return port == ENVD_PORT || port == INTERPRETER_PORT;
}

static int copy_token(const struct head_field *f, char out[BROKER_TOKEN_SIZE])
{
    if (!f)
        return 0;
    if (f->value.n >= BROKER_TOKEN_SIZE)
        return -EINVAL;
    memcpy(out, f->value.p, f->value.n);
    out[f->value.n] = '\0';
    return 0;
}

/* E2b-Sandbox-Id and -Port on a request that wants to become something else than HTTP. */
static bool find_by_headers(const struct head *h, struct way *r)
{
    const struct head_field *id = head_find(h, "E2b-Sandbox-Id");
    const struct head_field *port = head_find(h, "E2b-Sandbox-Port");
    if (!h->upgrade || !id || !port || id->value.n != ID_LEN ||
        !preview_port(port->value.p, port->value.n, &r->port) || is_answered_here(r->port))
        return false;
    memcpy(r->sandbox, id->value.p, ID_LEN);
    r->sandbox[ID_LEN] = '\0';
    return id_valid(r->sandbox);
}

int way_find(const struct head *h, const char *domain, struct way *ret_way)
{
    struct way r = { 0 };
    const struct head_field *accept = head_find(h, "Accept");
    bool by_host = preview_host(h->host.p, h->host.n, domain, r.sandbox, &r.port);
    r.by_headers = !by_host && find_by_headers(h, &r);
    r.api = !by_host && !r.by_headers && preview_is_api(h->host.p, h->host.n, domain);
    r.inside = r.by_headers || (by_host && !is_answered_here(r.port));
    if (!by_host && !r.by_headers) {
        r.sandbox[0] = '\0';
        r.port = 0;
    }
    for (struct text a = accept ? accept->value : (struct text){ "", 0 }; a.n > 0; a.p++, a.n--)
        r.html |= text_starts(a, "text/html");
    if (copy_token(head_find(h, "E2b-Traffic-Access-Token"), r.token) < 0)
        return -EINVAL;
    *ret_way = r;
    return 0;
}

void way_rewrite(const struct way *way, struct rewrite *how)
{
    how->inside = way->inside;
    how->sandbox = !way->inside && way->sandbox[0] ? way->sandbox : NULL;
    how->port = way->port;
    how->prefix = how->sandbox || way->api ? MOUNT : NULL;
    how->strip = way->by_headers ? MOUNT : NULL;
}
