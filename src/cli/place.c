#include "cli/place.h"

#include <stddef.h>
#include <string.h>

#include "cli/object.h"
#include "cli/xmem.h"

void place_parse(const char *text, struct place *ret_place)
{
    size_t n = strcspn(text, ":/");
    *ret_place = (struct place){ 0 };
    if (n > 0 && text[n] == ':') {
        ret_place->sandbox = xstrndup(text, n);
        ret_place->path = xstrdup(text[n + 1] ? text + n + 1 : ".");
    } else {
        ret_place->path = xstrdup(text);
    }
}

void place_done(struct place *p)
{
    free(p->sandbox);
    free(p->path);
}

bool place_is_stdio(const struct place *p)
{
    return !p->sandbox && strcmp(p->path, "-") == 0;
}

char *place_name(const char *path)
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t at = end;
    while (at > 0 && path[at - 1] != '/')
        at--;
    return xstrndup(path + at, end - at);
}

char *place_join(const char *dir, const char *name)
{
    size_t n = strlen(dir);
    return xasprintf("%s%s%s", dir, n > 0 && dir[n - 1] == '/' ? "" : "/", name);
}

char *files_path(const char *sandbox, const char *sub, const char *path, const char *user)
{
    char *url = *sub ? api_path("sandboxes", sandbox, "files", sub, NULL)
                     : api_path("sandboxes", sandbox, "files", NULL);
    if (path)
        url = api_query(url, "path", path);
    if (user)
        url = api_query(url, "user", user);
    return url;
}
