#include "net/exempt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void exempt_done(struct exempt *e)
{
    for (size_t i = 0; i < e->n_hosts; i++)
        free(e->hosts[i]);
    e->n_hosts = e->n_ranges = 0;
}

static int add(struct exempt *e, const char *p, size_t n, struct err *err)
{
    char host[HOST_SIZE];
    if (e->n_ranges == EXEMPT_MAX || e->n_hosts == EXEMPT_MAX)
        return err_set(err, E2BIG, "more than %d places", EXEMPT_MAX);
    if (range_parse(p, n, &e->ranges[e->n_ranges]) == 0) {
        e->n_ranges++;
        return 0;
    }
    if (host_pattern(p, n, host) < 0)
        return err_set(err, EINVAL, "'%.*s' is no host and no range of addresses", (int)n, p);
    e->hosts[e->n_hosts] = strdup(host);
    if (!e->hosts[e->n_hosts])
        return err_set(err, ENOMEM, "out of memory");
    e->n_hosts++;
    return 0;
}

int exempt_parse(const char *list, struct exempt *ret_exempt, struct err *err)
{
    struct exempt e = { .n_ranges = 0 };
    for (const char *p = list; *p;) {
        p += strspn(p, ", \t");
        size_t n = strcspn(p, ", \t");
        int r = n ? add(&e, p, n, err) : 0;
        if (r < 0) {
            exempt_done(&e);
            return r;
        }
        p += n;
    }
    *ret_exempt = e;
    return 0;
}

bool exempt_has(const struct exempt *e, const struct address *to, const char *name)
{
    for (size_t i = 0; i < e->n_ranges; i++)
        if (range_has(&e->ranges[i], to))
            return true;
    for (size_t i = 0; name[0] && i < e->n_hosts; i++)
        if (host_matches(e->hosts[i], name))
            return true;
    return false;
}
