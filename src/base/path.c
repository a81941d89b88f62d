#include "base/path.h"

#include <stdbool.h>
#include <string.h>

void path_clean(char *path)
{
    bool absolute = path[0] == '/';
    char *top = path + absolute; /* nothing before it is ever taken away */
    char *out = top, *floor = top;
    for (const char *p = top; *p;) {
        const char *end = strchrnul(p, '/');
        size_t n = (size_t)(end - p);
        bool up = n == 2 && p[0] == '.' && p[1] == '.';
        if (up && out > floor) {
            while (out > floor && *--out != '/')
                ;
        } else if (n && !(n == 1 && p[0] == '.') && !(up && absolute)) {
            if (out > top)
                *out++ = '/';
            memmove(out, p, n);
            out += n;
            if (up)
                floor = out;
        }
        p = *end ? end + 1 : end;
    }
    *out = '\0';
    if (out == path)
        memcpy(path, ".", 2);
}

int path_resolve(const char *dir, const char *path, struct buf *out)
{
    buf_clear(out);
    int r = path[0] == '/' ? buf_puts(out, path) : buf_printf(out, "%s/%s", dir, path);
    if (r >= 0)
        r = buf_reserve(out, 2);
    if (r < 0)
        return r;
    path_clean(out->data);
    out->len = strlen(out->data);
    return 0;
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
