#include "broker/unresolved.h"

#include <stdio.h>
#include <string.h>

struct unresolved *unresolved_find(struct unresolveds *us, const char *name, int64_t now_ms)
{
    struct unresolved *oldest = &us->items[0];
    for (size_t i = 0; i < UNRESOLVED_MAX; i++) {
        struct unresolved *u = &us->items[i];
        if (u->since_ms && strcmp(u->name, name) == 0 && now_ms - u->since_ms < UNRESOLVED_MS)
            return u;
        if (u->since_ms < oldest->since_ms)
            oldest = u;
    }
    *oldest = (struct unresolved){ .since_ms = now_ms };
    (void)snprintf(oldest->name, sizeof(oldest->name), "%s", name);
    return oldest;
}
