#include "front/http/dialect.h"

#include <string.h>

const struct dialect *dialect_last(const struct dialect *const *list)
{
    while (list[1])
        list++;
    return list[0];
}

const struct dialect *dialect_find(const struct dialect *const *list, const struct uri *uri)
{
    for (size_t i = 0; list[i] && uri->nsegments > 0; i++)
        for (const char *const *mount = list[i]->mounts; mount && *mount; mount++)
            if (strcmp(*mount, uri->segments[0]) == 0)
                return list[i];
    return dialect_last(list);
}
