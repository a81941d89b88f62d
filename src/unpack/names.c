#include "unpack/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_one(struct names *names, size_t *cap, const char *name)
{
    if (names->n == *cap) {
        size_t more = *cap ? *cap * 2 : 64;
        char **items = reallocarray(names->items, more, sizeof(*items));
        if (!items)
            return -ENOMEM;
        names->items = items;
        *cap = more;
    }
    names->items[names->n] = strdup(name);
    if (!names->items[names->n])
        return -ENOMEM;
    names->n++;
    return 0;
}

static void sort(struct names *names)
{
    size_t kept = 0;
    if (names->n)
        qsort(names->items, names->n, sizeof(*names->items), compare);
    for (size_t i = 0; i < names->n; i++) {
        if (kept && strcmp(names->items[kept - 1], names->items[i]) == 0)
            free(names->items[i]);
        else
            names->items[kept++] = names->items[i];
    }
    names->n = kept;
}

int names_add(struct names *names, int dir_fd)
{
    int own = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    size_t cap = names->n;
    int r = dir ? 0 : -errno;
    if (!dir && own >= 0)
        (void)close(own);
    for (struct dirent *e; r == 0 && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            r = add_one(names, &cap, e->d_name);
    if (dir)
        (void)closedir(dir);
    sort(names);
    return r;
}

void names_done(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct names)NAMES_INIT;
}
