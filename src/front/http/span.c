#include "front/http/span.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int span_parse(const char *text, struct span *ret_range)
{
    struct span g = { .given = true, .last = UINT64_MAX };
    char *end = NULL;
    *ret_range = (struct span){ 0 };
    if (!text || strncmp(text, "bytes=", 6) != 0 || strchr(text, ','))
        return 0;
    text += 6;
    errno = 0;
    if (*text == '-') {
        g.suffix = true;
        text++;
    }
    if (*text < '0' || *text > '9')
        return -EINVAL;
    uint64_t v = strtoull(text, &end, 10);
    if (g.suffix) {
        g.last = v;
    } else {
        g.first = v;
        if (*end++ != '-')
            return -EINVAL;
        if (*end >= '0' && *end <= '9')
            g.last = strtoull(end, &end, 10);
    }
    if (*end || errno || (!g.suffix && g.last < g.first))
        return -EINVAL;
    *ret_range = g;
    return 0;
}

int span_settle(struct span *g, uint64_t size)
{
    if (!g->suffix)
        return 0;
    if (g->last == 0 || size == 0)
        return -ERANGE;
    g->first = g->last < size ? size - g->last : 0;
    g->last = UINT64_MAX;
    g->suffix = false;
    return 0;
}
