#include "init/file/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/file/path.h"
#include "init/file/stage.h"
#include "init/file/walk.h"

#define PIECE (16u * 1024 * 1024) /* between two looks at whether anyone still waits */

/* ---- bytes ---- */

static ssize_t copy_some(int from, int to, off_t *at, size_t n)
{
    off_t to_at = *at;
    ssize_t r = copy_file_range(from, at, to, &to_at, n, 0);
    if (r >= 0 || (errno != EXDEV && errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSYS))
        return r < 0 ? -errno : r;
    if (lseek(to, *at, SEEK_SET) < 0)
        return -errno;
    r = sendfile(to, from, at, n);
    return r < 0 ? -errno : r;
}

/* From one hole to the next: what takes no room there takes none here. */
static int copy_bytes(struct job *j, int from, int to, off_t size)
{
    if (size == 0 || ioctl(to, FICLONE, from) == 0)
        return 0;
    off_t at = 0;
    while (at < size) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            break;
        at = data < 0 ? at : data;
        off_t hole = lseek(from, at, SEEK_HOLE), end = hole < 0 ? size : hole;
        while (at < end) {
            size_t n = end - at < (off_t)PIECE ? (size_t)(end - at) : PIECE;
            ssize_t some = copy_some(from, to, &at, n);
            if (some < 0 && some != -EINTR)
                return (int)some;
            if (some == 0)
                return ftruncate(to, at) < 0 ? -errno : 0; /* it became shorter */
            int r = talk_look(&j->talk);
            if (r < 0)
                return r;
        }
    }
    return ftruncate(to, size) < 0 ? -errno : 0;
}

/* ---- what else a file is ---- */

static int copy_xattrs(int from, int to, bool same)
{
    static char list[XATTR_LIST_MAX], value[XATTR_SIZE_MAX];
    ssize_t n = flistxattr(from, list, sizeof(list));
    for (const char *x = list; n > 0 && x < list + n; x += strlen(x) + 1) {
        bool take = strncmp(x, "user.", 5) == 0 || strcmp(x, "system.posix_acl_access") == 0 ||
                    strcmp(x, "system.posix_acl_default") == 0 ||
                    (same && strcmp(x, "security.capability") == 0);
        ssize_t v = take ? fgetxattr(from, x, value, sizeof(value)) : -1;
        if (v >= 0 && fsetxattr(to, x, value, (size_t)v, 0) < 0 &&
            (errno == ENOSPC || errno == EDQUOT))
            return -errno;
    }
    return 0;
}

static int copy_nature(const struct copy *c, int from, int to, const struct stat *st)
{
    mode_t mode = st->st_mode & 07777;
    bool given = c->same && fchown(to, st->st_uid, st->st_gid) == 0;
    if (!given && (st->st_uid != c->j->uid || st->st_gid != c->j->gid))
        mode &= 01777;
    if (fchmod(to, mode) < 0)
        return -errno;
    int r = copy_xattrs(from, to, c->same);
    struct timespec times[2] = { st->st_atim, st->st_mtim };
    if (r == 0 && c->same && futimens(to, times) < 0)
        r = -errno;
    return r;
}

static int copy_file(const struct copy *c, int from_dir, const char *from, int to_dir,
                     const char *to)
{
    _cleanup_(stage_done) struct stage s = STAGE_INIT;
    struct stat st, old;
    _cleanup_fd_ int fd = open_regular(from_dir, from, O_RDONLY | O_NOFOLLOW);
    if (fd < 0)
        return fd == -ELOOP ? -ESTALE : fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    bool there = fstatat(to_dir, to, &old, AT_SYMLINK_NOFOLLOW) == 0;
    if (there && S_ISDIR(old.st_mode))
        return -EISDIR;
    if (there && old.st_dev == st.st_dev && old.st_ino == st.st_ino)
        return -EINVAL; /* the same file */
    int r = stage_open(to_dir, there && S_ISREG(old.st_mode), &s);
    if (r == 0)
        r = copy_bytes(c->j, fd, s.fd, st.st_size);
    if (r == 0)
        r = copy_nature(c, fd, s.fd, &st);
    return r < 0 ? r : stage_commit(&s, to, c->exclusive);
}

static int make_special(int from_dir, const char *from, const struct stat *st, int to_dir,
                        const char *to)
{
    char text[PATH_MAX];
    if (!S_ISLNK(st->st_mode))
        return mknodat(to_dir, to, st->st_mode & (S_IFMT | 0777), st->st_rdev) < 0 ? -errno : 0;
    ssize_t n = readlinkat(from_dir, from, text, sizeof(text) - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    return symlinkat(text, to_dir, to) < 0 ? -errno : 0;
}

/* Links, pipes, devices. */
static int copy_special(const struct copy *c, int from_dir, const char *from, const struct stat *st,
                        int to_dir, const char *to)
{
    if (S_ISSOCK(st->st_mode))
        return 1; /* nobody would answer on a copy */
    int r = make_special(from_dir, from, st, to_dir, to), is_new = 1;
    if (r == -EEXIST && !c->exclusive) {
        is_new = 0;
        r = unlinkat(to_dir, to, 0) < 0 ? -errno : make_special(from_dir, from, st, to_dir, to);
    }
    if (r < 0)
        return r;
    if (c->same) {
        struct timespec times[2] = { st->st_atim, st->st_mtim };
        (void)!fchownat(to_dir, to, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW);
        (void)utimensat(to_dir, to, times, AT_SYMLINK_NOFOLLOW);
    }
    return is_new;
}

static int copy_leaf(const struct copy *c, int from_dir, const char *from, const struct stat *st,
                     int to_dir, const char *to)
{
    if (S_ISREG(st->st_mode))
        return copy_file(c, from_dir, from, to_dir, to);
    return copy_special(c, from_dir, from, st, to_dir, to);
}

/* ---- directories ---- */

/* Open the directory of that name, made if it is not there. */
static int open_made(int dir, const char *name, bool exclusive, bool *ret_made)
{
    *ret_made = mkdirat(dir, name, 0700) == 0;
    if (!*ret_made && (errno != EEXIST || exclusive))
        return -errno;
    return walk_open_dir(dir, name);
}

/* The copy's directories that are open, by depth. */
struct made {
    int fd[WALK_DEPTH_MAX + 1];
    bool is_new[WALK_DEPTH_MAX + 1];
    size_t n;
};

static void made_set(struct made *m, size_t depth, int fd, bool is_new)
{
    while (m->n > depth)
        (void)close(m->fd[--m->n]);
    m->fd[depth] = fd;
    m->is_new[depth] = is_new;
    m->n = depth + 1;
}

static int copy_item(const struct copy *c, struct made *m, const struct walk_item *item,
                     const struct stat *top)
{
    bool is_new;
    int fd, r;
    switch (item->kind) {
    case WALK_FAIL: return -item->code;
    case WALK_LEAF:
        r = copy_leaf(c, item->dir, item->name, &item->st, m->fd[item->depth - 1], item->name);
        return r < 0 ? r : 0;
    case WALK_ENTER:
        if (item->st.st_dev == top->st_dev && item->st.st_ino == top->st_ino)
            return -EINVAL; /* the copy itself: someone moved it in here */
        fd = open_made(m->fd[item->depth - 1], item->name, false, &is_new);
        if (fd < 0)
            return fd == -ELOOP ? -ENOTDIR : fd;
        made_set(m, item->depth, fd, is_new);
        return 0;
    case WALK_LEAVE:
        if (!m->is_new[item->depth])
            return 0; /* merged: it stays as it was */
        return copy_nature(c, item->self, m->fd[item->depth], &item->st);
    }
    return -EINVAL;
}

static int copy_dir(const struct copy *c, int from_dir, const char *from, const char *from_path,
                    int to_dir, const char *to)
{
    static struct made m; /* too large for the stack */
    _cleanup_(walk_done) struct walk w = { 0 };
    struct walk_item *item = NULL;
    struct stat top, st;
    bool is_new;
    int source = walk_open_dir(from_dir, from);
    if (source < 0)
        return source;
    int fd = open_made(to_dir, to, c->exclusive, &is_new);
    if (fd < 0) {
        (void)close(source);
        return fd == -ELOOP ? -ENOTDIR : fd;
    }
    made_set(&m, 0, fd, is_new);
    int r = fstat(fd, &top) < 0 || fstat(source, &st) < 0 ? -errno : 0;
    int again = r < 0 ? -1 : dup(source);
    if (r == 0)
        r = walk_init(&w, source, from_path);
    else
        (void)close(source);
    struct copy below = *c;
    below.exclusive = false;
    while (r >= 0 && (r = walk_next(&w, &item)) > 0) {
        r = copy_item(&below, &m, item, &top);
        if (r < 0)
            r = job_fail(c->j, r, item->path);
        else
            r = talk_beat(&c->j->talk);
    }
    if (r == 0 && is_new)
        r = copy_nature(c, again, m.fd[0], &st);
    if (again >= 0)
        (void)close(again);
    while (m.n > 0)
        (void)close(m.fd[--m.n]);
    return r < 0 ? r : is_new;
}

int copy_tree(const struct copy *c, int from_dir, const char *from, const char *from_path,
              int to_dir, const char *to, const char *to_path)
{
    struct stat st;
    if (fstatat(from_dir, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return job_fail(c->j, errno, from_path);
    if (S_ISDIR(st.st_mode) && !c->recursive)
        return job_fail(c->j, EISDIR, from_path);
    int r = S_ISDIR(st.st_mode) ? copy_dir(c, from_dir, from, from_path, to_dir, to)
                                : copy_leaf(c, from_dir, from, &st, to_dir, to);
    if (r >= 0 || c->j->err.code)
        return r;
    /* Whose fault it was, the source's or the copy's, the error itself mostly tells. */
    bool source = r == -EACCES && faccessat(from_dir, from, R_OK, AT_EACCESS) < 0;
    return job_fail(c->j, r, source ? from_path : to_path);
}
