/* links - which inodes were seen, and under which name: for hard links. Bounded; what does not fit
 * is not remembered. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct links {
    struct link_seen *seen;
    size_t n, cap; /* cap is a power of two */
    size_t bytes;
};

/* The name this inode was first seen under, or NULL: then it is remembered as `name` ("" is as
 * good as any for who only wants to count). */
const char *links_seen(struct links *l, const struct stat *st, const char *name);
void links_done(struct links *l);
