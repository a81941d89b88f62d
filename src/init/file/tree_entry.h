/* tree_entry - one ENTRY of a tree that comes in, decoded and checked.
 *
 * Pure. The tree is hostile: a name that is absolute, leads up or is too long is refused here, so
 * that what writes can trust in a relative path of plain names. */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

#define TREE_XATTRS_MAX 64 /* of one entry */

struct tree_entry {
    char path[PATH_MAX]; /* "" is the top itself */
    char link[PATH_MAX]; /* a symbolic link's text; a hard link's target, checked like a path */
    enum wire_file_type type;
    bool has_mode, has_size, has_mtime;
    unsigned mode;
    uint64_t uid, gid, size, rdev;
    int64_t mtime_ns;
    struct {
        size_t at, n; /* "name\0value" in the payload */
    } xattrs[TREE_XATTRS_MAX];
    size_t n_xattrs;
};

/* -EINVAL: *ret_why says what is wrong with the entry, whose path is set as far as it is known. */
int tree_entry_decode(const char *payload, size_t n, struct tree_entry *ret_e,
                      const char **ret_why);
