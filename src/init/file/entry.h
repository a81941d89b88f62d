/* entry - what is told of a file: ENTRY frames and their fields. */
#pragma once
#include <sys/stat.h>

#include "init/file/job.h"

#define ETAG_MAX 80 /* four numbers in hex */

struct entry_more {
    const char *link; /* NULL: none */
    uint64_t length;  /* READ */
    bool has_length;
    bool plain;               /* in a tree: no names, no etag, no times but the contents' */
    enum wire_file_type type; /* 0: as st_mode says */
};

enum wire_file_type entry_type(mode_t mode);
void etag_of(const struct stat *st, char out[ETAG_MAX]);
int entry_put(struct buf *b, const char *path, const struct stat *st,
              const struct entry_more *more /* may be NULL */);
/* Put every extended attribute of `path` (as /proc/self/fd/N or a plain path; a link's own unless
 * follow) that the user may read. With `only_tree`, what a tree carries: user.* and
 * security.capability. What cannot be read is left out. */
int entry_put_xattrs(struct buf *b, const char *path, bool follow, bool only_tree);
/* The same where the request wants them (WIRE_F_XATTRS), of the path itself; those that are too
 * large to be told are left out. */
int entry_put_asked(struct job *j, struct buf *b, const char *path);
/* One ENTRY (or CHANGE with its fields put before) of (dir, name), whose link text is read. */
int entry_send(struct job *j, int dir, const char *name, const char *path, const struct stat *st);
