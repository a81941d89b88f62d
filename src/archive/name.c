#include "archive/name.h"

#include <errno.h>
#include <string.h>

int name_clean(const char *name, char out[NAME_SIZE])
{
    size_t n = 0;
    if (!name[0])
        return -EINVAL;
    if (name[0] == '/')
        return -EPERM;
    for (const char *at = name; *at;) {
        size_t len = strcspn(at, "/");
        if (len == 2 && at[0] == '.' && at[1] == '.')
            return -EPERM;
        if (len > 0 && !(len == 1 && at[0] == '.')) {
            if (n + (n > 0) + len + 1 > NAME_SIZE)
                return -ENAMETOOLONG;
            if (n > 0)
                out[n++] = '/';
            memcpy(out + n, at, len);
            n += len;
        }
        at += len;
        at += strspn(at, "/");
    }
    if (n == 0)
        out[n++] = '.';
    out[n] = '\0';
    return 0;
}
