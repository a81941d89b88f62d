#include "broker/origin.h"

#include <string.h>
#include <strings.h>

#include "net/preview.h"

/* "https://name:port" -> "name:port"; empty: it is none, as "null" is. */
static struct text host_of(struct text origin)
{
    const char *mark = memmem(origin.p, origin.n, "://", 3);
    if (!mark)
        return (struct text){ "", 0 };
    return (struct text){ mark + 3, origin.n - (size_t)(mark + 3 - origin.p) };
}

static bool same_name(struct text a, struct text b)
{
    size_t n = preview_name_len(a.p, a.n);
    return n > 0 && n == preview_name_len(b.p, b.n) && strncasecmp(a.p, b.p, n) == 0;
}

bool origin_is_strange(const struct head *h, const char *domain, const char *sandbox)
{
    const struct head_field *f = head_find(h, "Origin");
    char id[ID_SIZE];
    unsigned port;
    if (!f)
        return false;
    struct text host = host_of(f->value);
    if (same_name(host, h->host))
        return false;
    return !preview_host(host.p, host.n, domain, id, &port) || strcmp(id, sandbox) != 0;
}
