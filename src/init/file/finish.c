#include "init/file/finish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LATER_MAX (1u << 17)                /* directories; more get their mode at once */
#define LATER_BYTES_MAX (16u * 1024 * 1024) /* of their paths */

struct finish finish_of(const struct tree_entry *e, bool keep_ids)
{
    struct finish f = { .has_mode = e->has_mode, .has_mtime = e->has_mtime };
    f.has_owner = keep_ids;
    f.uid = (uid_t)e->uid;
    f.gid = (gid_t)e->gid;
    /* A program that becomes its owner must not become someone else's than it was. */
    f.mode = e->mode & (keep_ids ? 07777 : 01777);
    f.mtime_ns = e->mtime_ns;
    return f;
}

static void times_of(const struct finish *f, struct timespec out[2])
{
    int64_t s = f->mtime_ns / 1000000000, ns = f->mtime_ns % 1000000000;
    if (ns < 0) {
        s--;
        ns += 1000000000;
    }
    out[0] = (struct timespec){ .tv_nsec = UTIME_OMIT };
    out[1] = (struct timespec){ .tv_sec = s, .tv_nsec = ns };
}

int finish_xattrs(const struct tree_entry *e, const char *payload, bool keep_ids, int fd)
{
    for (size_t i = 0; payload && i < e->n_xattrs; i++) {
        const char *name = payload + e->xattrs[i].at;
        size_t name_n = strlen(name) + 1;
        bool is_user = strncmp(name, "user.", 5) == 0;
        bool is_capability = strcmp(name, "security.capability") == 0 && keep_ids;
        if (!is_user && !is_capability)
            continue;
        if (fsetxattr(fd, name, name + name_n, e->xattrs[i].n - name_n, 0) < 0 &&
            (errno == ENOSPC || errno == EDQUOT))
            return -errno; /* a filesystem that has none of them does without */
    }
    return 0;
}

int finish_fd(const struct finish *f, int fd, const struct tree_entry *e, const char *payload)
{
    struct timespec times[2];
    if (f->has_owner && fchown(fd, f->uid, f->gid) < 0)
        return -errno;
    /* Between the two: a new owner takes a capability away, and a mode may forbid to set any. */
    int r = e ? finish_xattrs(e, payload, f->has_owner, fd) : 0;
    if (r < 0)
        return r;
    if (f->has_mode && fchmod(fd, f->mode) < 0)
        return -errno;
    times_of(f, times);
    return f->has_mtime && futimens(fd, times) < 0 ? -errno : 0;
}

int finish_name(const struct finish *f, int dir, const char *name, bool is_link)
{
    struct timespec times[2];
    if (f->has_owner && fchownat(dir, name, f->uid, f->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!is_link && f->has_mode && fchmodat(dir, name, f->mode, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    times_of(f, times);
    if (f->has_mtime && utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return 0;
}

/* ---- directories ---- */

static int finish_dir(const struct beneath *b, const char *path, const struct finish *f)
{
    int fd = beneath_open(b, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (fd < 0)
        return fd;
    int r = finish_fd(f, fd, NULL, NULL);
    (void)close(fd);
    return r;
}

int finish_later(struct finish_later *l, const struct beneath *b, const char *path,
                 const struct finish *f)
{
    size_t n = strlen(path) + 1;
    if (l->n == LATER_MAX || l->bytes + n > LATER_BYTES_MAX)
        return finish_dir(b, path, f);
    if ((l->n & (l->n - 1)) == 0) { /* full, or nothing yet */
        struct finish_dir *dirs = realloc(l->dirs, (l->n ? l->n * 2 : 1) * sizeof(*dirs));
        if (!dirs)
            return -ENOMEM;
        l->dirs = dirs;
    }
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    l->dirs[l->n++] = (struct finish_dir){ copy, *f };
    l->bytes += n;
    return 0;
}

/* The deepest first: once a directory is closed to us, what is in it cannot be reached. */
int finish_dirs(struct finish_later *l, const struct beneath *b, const char **ret_path)
{
    for (size_t i = l->n; i > 0; i--) {
        int r = finish_dir(b, l->dirs[i - 1].path, &l->dirs[i - 1].finish);
        *ret_path = l->dirs[i - 1].path;
        if (r < 0 && r != -ENOENT)
            return r;
    }
    return 0;
}

void finish_later_done(struct finish_later *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->dirs[i].path);
    free(l->dirs);
    *l = (struct finish_later){ 0 };
}
