#include "broker/way.h"

#include <errno.h>
#include <string.h>

#include "broker/origin.h"
#include "broker/proof.h"
#include "net/preview.h"

#define ENVD_PORT 49983
#define INTERPRETER_PORT 49999
#define MOUNT "/e2b"

static bool is_answered_here(unsigned port)
{
    return port == ENVD_PORT || port == INTERPRETER_PORT;
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

static bool wants_html(const struct head *h)
{
    const struct head_field *accept = head_find(h, "Accept");
    bool html = false;
    for (struct text a = accept ? accept->value : (struct text){ "", 0 }; a.n > 0; a.p++, a.n--)
        html |= text_starts(a, "text/html");
    return html;
}

int way_find(const struct head *h, const struct way_map *map, struct way *ret_way)
{
    struct way r = { 0 };
    const char *host = h->host.p;
    size_t n = h->host.n;
    if (!preview_host_plain(host, n)) /* a server inside could read the rest as another host */
        return -EINVAL;
    bool by_host = preview_host(host, n, map->domain, r.sandbox, &r.port);
    bool by_alias = !by_host && own_names_find(map->own_names, host, n, r.sandbox, &r.port);
    r.by_headers = !by_host && !by_alias && find_by_headers(h, &r);
    bool named = by_host || by_alias || r.by_headers;
    r.api = !named && preview_is_api(host, n, map->domain);
    r.nobody = !named && !r.api && preview_is_below(host, n, map->domain);
    r.inside = r.by_headers || by_alias || (by_host && !is_answered_here(r.port));
    if (!named) {
        r.sandbox[0] = '\0';
        r.port = 0;
    }
    r.html = wants_html(h);
    enum proof_cookies cookies = origin_is_strange(h, map->domain, r.sandbox) ? PROOF_NO_COOKIE
                                 : map->tls                                   ? PROOF_COOKIE_TLS
                                                                              : PROOF_COOKIE;
    if (r.inside && proof_find(h, cookies, &r.proof, &r.by_query) < 0)
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
