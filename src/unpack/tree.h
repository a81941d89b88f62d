/* tree - a root filesystem on which one layer is being laid.
 *
 * Paths are resolved as a process whose root it is would: links of lower layers are followed, and
 * none leads out (openat2 with RESOLVE_IN_ROOT). What is made here is remembered, because whiteouts
 * hide only what was there before. */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "unpack/seen.h"

struct tree {
    int root; /* borrowed */
    struct seen seen;
    /* The directory of the entry at hand, and its path: entries come directory by directory. */
    int dir;
    uint64_t dir_ino;
    char dir_path[PATH_MAX];
};

int tree_init(struct tree *t, int root, struct err *err);
void tree_done(struct tree *t);

/* Makes t->dir the directory of `path` (as stream_path gives it), with its parents if they are
 * missing; *ret_name is the last part. */
int tree_enter(struct tree *t, const char *path, const char **ret_name, struct err *err);
/* Clears the way for `name` in t->dir: 1 if it is a directory that may stay (only with dir). Notes
 * that this layer has it. */
int tree_claim(struct tree *t, const char *name, bool dir, struct err *err);
/* Whiteouts: hide `name`, or everything in t->dir, as far as lower layers brought it. */
int tree_hide(struct tree *t, const char *name, struct err *err);
int tree_hide_all(struct tree *t, struct err *err);
/* A hard link `name` in t->dir to another path. */
int tree_link(struct tree *t, const char *name, const char *target, struct err *err);
/* An open directory by its path; -errno. */
int tree_open_dir(const struct tree *t, const char *path, int flags);
