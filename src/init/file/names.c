#include "init/file/names.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define DENTS_BYTES (32u * 1024)
#define LEAST_BYTES_MAX (64u * 1024 * 1024) /* some two million names */

static _Alignas(struct dirent64) char dents[DENTS_BYTES];

void names_done(struct names *l)
{
    free(l->bytes);
    free(l->at);
    *l = (struct names){ 0 };
}

static int add(struct names *l, const char *name)
{
    size_t n = strlen(name) + 1;
    if (l->used + n > l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 4096;
        char *bytes = realloc(l->bytes, cap);
        if (!bytes)
            return -ENOMEM;
        l->bytes = bytes;
        l->cap = cap;
    }
    if (l->n == l->n_cap) {
        size_t cap = l->n_cap ? l->n_cap * 2 : 128;
        uint32_t *at = realloc(l->at, cap * sizeof(*at));
        if (!at)
            return -ENOMEM;
        l->at = at;
        l->n_cap = cap;
    }
    memcpy(l->bytes + l->used, name, n);
    l->at[l->n++] = (uint32_t)l->used;
    l->used += n;
    return 0;
}

static int compare(const void *a, const void *b, void *bytes)
{
    return strcmp((char *)bytes + *(const uint32_t *)a, (char *)bytes + *(const uint32_t *)b);
}

static void sort(struct names *l)
{
    if (l->n > 1)
        qsort_r(l->at, l->n, sizeof(*l->at), compare, l->bytes);
}

/* One getdents64 into the list: 0 at the directory's end. */
static ssize_t read_some(struct names *l, int dir, const char *from)
{
    ssize_t got = getdents64(dir, (void *)dents, sizeof(dents));
    if (got < 0)
        return -errno;
    for (ssize_t at = 0; at < got;) {
        const struct dirent64 *d = (const void *)(dents + at);
        at += d->d_reclen;
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        if (from && strcmp(d->d_name, from) < 0)
            continue;
        int r = add(l, d->d_name);
        if (r < 0)
            return r;
    }
    return got;
}

int names_more(struct names *l, int dir, size_t budget)
{
    l->n = l->used = 0;
    while (l->used < budget) {
        ssize_t got = read_some(l, dir, NULL);
        if (got < 0)
            return (int)got;
        if (got == 0)
            break;
    }
    sort(l);
    return 0;
}

/* Sort, and forget all but the first. */
static int cut(struct names *l, size_t keep)
{
    struct names kept = { 0 };
    int r = 0;
    sort(l);
    for (size_t i = 0; r == 0 && i < keep && i < l->n; i++)
        r = add(&kept, names_get(l, i));
    names_done(l);
    *l = kept;
    return r;
}

int names_least(struct names *l, int dir, const char *from, size_t keep)
{
    int r = 0;
    l->n = l->used = 0;
    for (;;) {
        ssize_t got = read_some(l, dir, from);
        if (got < 0)
            return (int)got;
        if (got == 0)
            break;
        if (l->n / 2 > keep)
            r = cut(l, keep);
        if (r < 0)
            return r;
        if (l->used > LEAST_BYTES_MAX)
            return -E2BIG;
    }
    if (l->n > keep)
        return cut(l, keep);
    sort(l);
    return 0;
}
