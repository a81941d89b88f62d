/* copy - a file or a whole tree under another name.
 *
 * Extents are shared where the filesystem can. The source is walked by descriptors and the copy is
 * made by descriptors, so nothing that is swapped meanwhile leads elsewhere. */
#pragma once
#include <stdbool.h>
#include <sys/stat.h>

#include "init/file/job.h"

struct copy {
    struct job *j;
    bool recursive;
    bool same;      /* a move: owners, times and all; else the copy is the user's */
    bool exclusive; /* nothing of that name may be there */
};

/* 1: the name is new, 0: it was there. Paths are for messages. */
int copy_tree(const struct copy *c, int from_dir, const char *from, const char *from_path,
              int to_dir, const char *to, const char *to_path);
