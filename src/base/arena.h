/* arena - memory that is given back all at once, born with a limit like a buf.
 *
 * For what is built from one piece of outside text and dies with it, such as a parsed file: the
 * parts need no owner of their own. Past the limit an allocation fails like any other. */
#pragma once
#include <stddef.h>

#include "base/cleanup.h"

struct arena_block;
struct arena {
    struct arena_block *blocks;
    size_t used, max; /* bytes handed out */
};

#define ARENA_INIT(max_) \
    {                    \
        NULL, 0, (max_)  \
    }

void *arena_alloc(struct arena *a, size_t n); /* zeroed, aligned; NULL: no memory or no room */
char *arena_strndup(struct arena *a, const char *p, size_t n);
char *arena_strdup(struct arena *a, const char *s);
/* Room for one more item behind n in an array that doubles: the array, perhaps moved, or NULL. */
void *arena_grow(struct arena *a, void *items, size_t n, size_t item_size);
void arena_done(struct arena *a); /* may be used again */
