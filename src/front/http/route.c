#include "front/http/route.h"

#include <string.h>

static bool matches(const char *pattern, const struct uri *uri, const char **args)
{
    size_t nargs = 0, i = 0;
    const char *at = pattern + 1; /* past the first '/' */

    for (;; i++) {
        const char *slash = strchr(at, '/');
        size_t len = slash ? (size_t)(slash - at) : strlen(at);
        if (i == uri->nsegments)
            return false;
        const char *seg = uri->segments[i];
        if (at[0] == '{') {
            if (seg[0] == '\0' || nargs == ROUTE_ARGS_MAX)
                return false;
            args[nargs++] = seg;
        } else if (strlen(seg) != len || memcmp(seg, at, len) != 0) {
            return false;
        }
        if (!slash)
            return i + 1 == uri->nsegments;
        at = slash + 1;
    }
}

enum route_found route_find(const struct route *routes, size_t n, const char *method,
                            const struct uri *uri, const struct route **ret_route,
                            const char *args[ROUTE_ARGS_MAX], char allow[ROUTE_ALLOW_MAX])
{
    bool head = strcmp(method, "HEAD") == 0;
    size_t len = 0;

    allow[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        const char *found[ROUTE_ARGS_MAX] = { 0 };
        if (!matches(routes[i].pattern, uri, found))
            continue;
        if (strcmp(routes[i].method, head ? "GET" : method) == 0) {
            *ret_route = &routes[i];
            memcpy(args, found, sizeof(found));
            return ROUTE_FOUND;
        }
        int m = snprintf(allow + len, ROUTE_ALLOW_MAX - len, "%s%s%s", len ? ", " : "",
                         routes[i].method, strcmp(routes[i].method, "GET") == 0 ? ", HEAD" : "");
        if (m > 0 && (size_t)m < ROUTE_ALLOW_MAX - len)
            len += (size_t)m;
    }
    return len ? ROUTE_OTHER_METHOD : ROUTE_UNKNOWN;
}
