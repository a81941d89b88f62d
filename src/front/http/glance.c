#include "front/http/glance.h"

#include <string.h>
#include <strings.h>

#include "net/preview.h"

struct field {
    const char *p;
    size_t n;
};

/* The value of the first line that begins with "name:". */
static bool find(const char *head, size_t n, const char *name, struct field *ret_value)
{
    size_t len = strlen(name);
    const char *end = head + n;
    for (const char *lf = memchr(head, '\n', n); lf; lf = memchr(lf, '\n', (size_t)(end - lf))) {
        lf++;
        if ((size_t)(end - lf) <= len || lf[len] != ':' || strncasecmp(lf, name, len) != 0)
            continue;
        const char *p = lf + len + 1;
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop)
            stop = end;
        while (p < stop && (*p == ' ' || *p == '\t'))
            p++;
        while (stop > p && (stop[-1] == '\r' || stop[-1] == ' ' || stop[-1] == '\t'))
            stop--;
        *ret_value = (struct field){ p, (size_t)(stop - p) };
        return true;
    }
    return false;
}

void glance(const char *head, size_t n, const char *domain, struct glance *ret_g)
{
    struct field host = { "", 0 }, other;
    (void)find(head, n, "Host", &host);
    *ret_g = (struct glance){ .host = host.p, .host_len = host.n };
    ret_g->preview =
        preview_is_below(host.p, host.n, domain) ||
        (find(head, n, "Upgrade", &other) && find(head, n, "E2b-Sandbox-Port", &other));
}
