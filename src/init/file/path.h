/* path - from the words of a request to a directory held open and a name in it.
 *
 * The kernel resolves, as the user, inside the sandbox: a path means what it means to a program
 * there. What is done afterwards is done to (dir, name) without following anything, so a name that
 * is swapped meanwhile leads nowhere else. */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "init/file/job.h"

struct place {
    int dir;                 /* O_PATH; -1 */
    char name[NAME_MAX + 1]; /* "" : the directory itself is meant */
    char *path;              /* absolute, for people */
};

#define PLACE_INIT   \
    {                \
        -1, "", NULL \
    }

enum place_flag {
    PLACE_PARENTS = 1, /* make the directories that are missing */
    PLACE_FOLLOW = 2,  /* a symbolic link at the end: go where it leads, be it there or not */
};

/* Absolute, in its shortest spelling; "~" and what is relative is in the home. */
int path_of(struct job *j, const char *asked, char **ret_path);
/* Name in `path` for messages on failure is asked's own. */
int place_open(struct job *j, const char *asked, unsigned flags, struct place *ret_place);
void place_done(struct place *p);
int place_stat(const struct place *p, struct stat *ret_st); /* not through a link */

/* Open what is a regular file, or say why not; never waits, whatever lies there. */
int open_regular(int dir, const char *name, int flags);
int path_join(const char *dir, const char *name, char **ret_path);
/* Make the directories of an absolute path, each the user's. */
int path_make(const char *path);
