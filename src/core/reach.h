/* reach - whose thing a name means: the one rule for what teams may share by name.
 *
 * A bare name is the asker's own thing, else the operator's if that is public, else nobody's. Another
 * team's public thing is reached by "team/name" alone. So nothing that a team publishes stands in for
 * what others ask for. The rule knows names and owners, not what they lead to. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/core.h"

struct reach {
    const char *asker, *text; /* as they were asked for */
    char team[OWNER_MAX];     /* the part before the first slash; "": it cannot be a team's name */
    const char *name;         /* the part after it */
};

/* Borrows both texts until the last reach_rank. */
struct reach reach_of(const char *asker, const char *text);

/* How well this thing matches what was asked for; 0: not at all. The highest rank is meant, and
 * no two things rank alike. */
int reach_rank(const struct reach *r, const char *owner, const char *name, bool public);

/* The name by which the asker reaches it. -EMSGSIZE: out is too small. */
int reach_name(const char *asker, const char *owner, const char *name, char *out, size_t size);
