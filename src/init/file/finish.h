/* finish - owner, mode, attributes and time of something that a tree brought, set once nothing
 * more is written to it, in the order in which one does not undo the other. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "init/file/beneath.h"
#include "init/file/tree_entry.h"

struct finish {
    bool has_mode, has_mtime, has_owner;
    mode_t mode;
    uid_t uid;
    gid_t gid;
    int64_t mtime_ns;
};

/* `keep_ids`: what the entry says of its owner counts; else it is the user's, without the rights of
 * another. */
struct finish finish_of(const struct tree_entry *e, bool keep_ids);
/* With `e`, its extended attributes too: `payload` is what it was decoded from. */
int finish_fd(const struct finish *f, int fd, const struct tree_entry *e, const char *payload);
int finish_name(const struct finish *f, int dir, const char *name, bool is_link); /* unopened */
/* What an entry may bring: the user's own, and with `keep_ids` a capability. */
int finish_xattrs(const struct tree_entry *e, const char *payload, bool keep_ids, int fd);

/* ---- directories: when the whole tree is there ---- */

struct finish_later {
    struct finish_dir {
        char *path;
        struct finish finish;
    } * dirs;
    size_t n, bytes;
};

int finish_later(struct finish_later *l, const struct beneath *b, const char *path,
                 const struct finish *f);
int finish_dirs(struct finish_later *l, const struct beneath *b, const char **ret_path);
void finish_later_done(struct finish_later *l);
