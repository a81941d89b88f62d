#include "init/file/links.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX (1u << 18)
#define BYTES_MAX (16u * 1024 * 1024)

struct link_seen {
    dev_t dev;
    ino_t ino;
    char *name; /* NULL: free */
};

static size_t slot(const struct links *l, dev_t dev, ino_t ino)
{
    uint64_t h = ((uint64_t)ino ^ ((uint64_t)dev << 32)) * 0x9e3779b97f4a7c15u;
    size_t i = (size_t)(h >> 20) & (l->cap - 1);
    while (l->seen[i].name && (l->seen[i].dev != dev || l->seen[i].ino != ino))
        i = (i + 1) & (l->cap - 1);
    return i;
}

static bool grow(struct links *l)
{
    struct links more = { .cap = l->cap ? l->cap * 2 : 256 };
    more.seen = calloc(more.cap, sizeof(*more.seen));
    if (!more.seen)
        return false;
    for (size_t i = 0; i < l->cap; i++)
        if (l->seen[i].name)
            more.seen[slot(&more, l->seen[i].dev, l->seen[i].ino)] = l->seen[i];
    free(l->seen);
    l->seen = more.seen;
    l->cap = more.cap;
    return true;
}

const char *links_seen(struct links *l, const struct stat *st, const char *name)
{
    if (l->cap > 0) {
        size_t i = slot(l, st->st_dev, st->st_ino);
        if (l->seen[i].name)
            return l->seen[i].name;
    }
    size_t n = strlen(name) + 1;
    if (l->n >= ENTRIES_MAX || l->bytes + n > BYTES_MAX)
        return NULL;
    if (l->n * 2 >= l->cap && !grow(l))
        return NULL;
    size_t i = slot(l, st->st_dev, st->st_ino);
    l->seen[i] = (struct link_seen){ st->st_dev, st->st_ino, strdup(name) };
    if (l->seen[i].name) {
        l->n++;
        l->bytes += n;
    }
    return NULL;
}

void links_done(struct links *l)
{
    for (size_t i = 0; i < l->cap; i++)
        free(l->seen[i].name);
    free(l->seen);
    *l = (struct links){ 0 };
}
