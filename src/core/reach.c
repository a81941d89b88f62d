#include "core/reach.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/id.h"

enum { NOT_AT_ALL, BY_TEAM, OPERATORS, OWN };

struct reach reach_of(const char *asker, const char *text)
{
    struct reach r = { .asker = asker, .text = text };
    size_t n = strcspn(text, "/");
    if (text[n] == '\0' || n >= sizeof(r.team))
        return r;
    memcpy(r.team, text, n);
    r.name = text + n + 1;
    if (!name_valid(r.team))
        r.team[0] = '\0';
    return r;
}

int reach_rank(const struct reach *r, const char *owner, const char *name, bool public)
{
    bool own = strcmp(owner, r->asker) == 0;
    if (strcmp(name, r->text) == 0 && own)
        return OWN;
    if (strcmp(name, r->text) == 0 && public && strcmp(owner, OWNER_DEFAULT) == 0)
        return OPERATORS;
    return r->team[0] && strcmp(owner, r->team) == 0 && strcmp(name, r->name) == 0 &&
                   (public || own)
               ? BY_TEAM
               : NOT_AT_ALL;
}

int reach_name(const char *asker, const char *owner, const char *name, char *out, size_t size)
{
    bool bare = strcmp(owner, asker) == 0 || strcmp(owner, OWNER_DEFAULT) == 0;
    int n = snprintf(out, size, "%s%s%s", bare ? "" : owner, bare ? "" : "/", name);
    return n < 0 || (size_t)n >= size ? -EMSGSIZE : 0;
}
