/* beneath - paths below a directory that the kernel itself keeps below it (openat2).
 *
 * Links on the way are followed where they stay below, whoever put them there; a way out is
 * -EXDEV, however the tree is changed meanwhile. The last name is never followed. */
#pragma once
#include <limits.h>
#include <stdbool.h>

struct beneath {
    int top;             /* -1; owned */
    bool is_root;        /* the sandbox's root: absolute links are below it, too */
    char kept[PATH_MAX]; /* the directory held last: entries come one directory after the other */
    int dir;             /* -1 */
};

#define BENEATH_INIT         \
    {                        \
        .top = -1, .dir = -1 \
    }

int beneath_open(const struct beneath *b, const char *path, int flags);
/* Hold the directory that `path` (plain names) lies in, made if it is missing, and find its last
 * name: the directory is borrowed until the next call. */
int beneath_parent(struct beneath *b, const char *path, const char **ret_name);
void beneath_forget(struct beneath *b); /* something that may have led there was replaced */
void beneath_done(struct beneath *b);
