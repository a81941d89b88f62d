#include "unpack/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unpack/stream.h"

#define DEPTH_MAX 2048 /* of what is removed: a path has no more parts */

static int bad(struct err *err, const char *path, const char *why)
{
    return err_fail(err, FAIL_INVALID_IMAGE, "'%.200s' %s", path, why);
}

static int failed(struct err *err, const char *path, const char *doing)
{
    int code = errno;
    if (code == ENOSPC || code == EDQUOT)
        return err_fail(err, FAIL_NO_SPACE, "the image does not fit");
    return err_fail_as(err, code, code == EIO ? FAIL_NONE : FAIL_INVALID_IMAGE,
                       "cannot %s '%.200s': %s", doing, path, strerror(code));
}

int tree_init(struct tree *t, int root, struct err *err)
{
    *t = (struct tree){ .root = root, .dir = -1 };
    int r = seen_init(&t->seen);
    return r < 0 ? err_set(err, -r, "cannot begin a layer") : 0;
}

void tree_done(struct tree *t)
{
    if (t->dir >= 0)
        (void)close(t->dir);
    t->dir = -1;
    seen_done(&t->seen);
}

int tree_open_dir(const struct tree *t, const char *path, int flags)
{
    struct open_how how = { .flags = (uint64_t)(flags | O_DIRECTORY | O_CLOEXEC),
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    int fd = (int)syscall(SYS_openat2, t->root, *path ? path : ".", &how, sizeof(how));
    return fd < 0 ? -errno : fd;
}

static int inode_of(int fd, uint64_t *ret_ino)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    *ret_ino = st.st_ino;
    return 0;
}

/* One directory of a path that this layer did not bring by itself. */
static int make_parent(struct tree *t, int above, const char *name, const char *path,
                       struct err *err)
{
    uint64_t ino = 0;
    if (mkdirat(above, name, 0755) < 0)
        return failed(err, path, "make the directory");
    int r = inode_of(above, &ino);
    if (r == 0)
        r = seen_add(&t->seen, ino, name);
    return r < 0 ? err_set(err, -r, "cannot note '%.200s'", path) : 0;
}

/* Part by part, because any of them may be a link into another branch. */
static int open_parents(struct tree *t, const char *path, struct err *err)
{
    char part[PATH_MAX];
    _cleanup_fd_ int at = tree_open_dir(t, "", O_PATH);
    for (const char *p = path; at >= 0 && *p;) {
        p += strcspn(p, "/");
        size_t n = (size_t)(p - path);
        memcpy(part, path, n);
        part[n] = '\0';
        p += *p == '/';
        int fd = tree_open_dir(t, part, O_PATH);
        if (fd == -ENOENT) {
            const char *slash = strrchr(part, '/');
            int r = make_parent(t, at, slash ? slash + 1 : part, part, err);
            if (r < 0)
                return r;
            fd = tree_open_dir(t, part, O_PATH);
        }
        if (fd < 0)
            return bad(err, part, "is not a directory");
        (void)close(at);
        at = fd;
    }
    return at < 0 ? err_set(err, -at, "cannot open the image's root") : take_fd(at);
}

int tree_enter(struct tree *t, const char *path, const char **ret_name, struct err *err)
{
    char parent[PATH_MAX] = "";
    const char *slash = strrchr(path, '/');
    if (slash) {
        memcpy(parent, path, (size_t)(slash - path));
        parent[slash - path] = '\0';
    }
    *ret_name = slash ? slash + 1 : path;
    if (strlen(*ret_name) > NAME_MAX)
        return bad(err, path, "is too long a name");
    if (t->dir >= 0 && strcmp(parent, t->dir_path) == 0)
        return 0;
    int fd = tree_open_dir(t, parent, O_PATH);
    if (fd < 0)
        fd = open_parents(t, parent, err);
    if (fd < 0)
        return fd;
    if (t->dir >= 0)
        (void)close(t->dir);
    t->dir = fd;
    (void)snprintf(t->dir_path, sizeof(t->dir_path), "%s", parent);
    int r = inode_of(fd, &t->dir_ino);
    return r < 0 ? err_set(err, -r, "cannot look at '%.200s'", parent) : 0;
}

/* ---- removing ---- */

enum remove_what { REMOVE_ALL, REMOVE_LOWER }; /* LOWER: what this layer did not bring */

static int empty_dir(struct tree *t, int fd, enum remove_what what, unsigned depth);

static int remove_entry(struct tree *t, int dir, uint64_t ino, const char *name,
                        enum remove_what what, unsigned depth)
{
    bool own = what == REMOVE_LOWER && seen_has(&t->seen, ino, name);
    if (!own && (unlinkat(dir, name, 0) == 0 || errno == ENOENT))
        return 0;
    if (!own && errno != EISDIR && errno != EPERM)
        return -errno;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return own && (errno == ENOTDIR || errno == ELOOP) ? 0 : -errno;
    int r = empty_dir(t, fd, what, depth + 1); /* takes fd */
    if (r == 0 && !own && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY)
        r = -errno;
    return r;
}

static int empty_dir(struct tree *t, int fd, enum remove_what what, unsigned depth)
{
    uint64_t ino = 0;
    DIR *d = depth > DEPTH_MAX ? NULL : fdopendir(fd);
    if (!d) {
        int code = depth > DEPTH_MAX ? ELOOP : errno;
        (void)close(fd);
        return -code;
    }
    int r = inode_of(fd, &ino);
    for (struct dirent *e; r == 0 && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            r = remove_entry(t, fd, ino, e->d_name, what, depth);
    (void)closedir(d);
    return r;
}

static int removed(int r, const char *name, struct err *err)
{
    if (r == 0)
        return 0;
    errno = -r;
    return failed(err, name, "remove");
}

int tree_claim(struct tree *t, const char *name, bool dir, struct err *err)
{
    struct stat st;
    int r = 0;
    bool there = fstatat(t->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    bool stays = there && dir && S_ISDIR(st.st_mode);
    if (there && !stays)
        r = removed(remove_entry(t, t->dir, t->dir_ino, name, REMOVE_ALL, 0), name, err);
    if (r == 0 && seen_add(&t->seen, t->dir_ino, name) < 0)
        r = err_set(err, ENOMEM, "cannot note '%.200s'", name);
    return r < 0 ? r : stays;
}

int tree_hide(struct tree *t, const char *name, struct err *err)
{
    return removed(remove_entry(t, t->dir, t->dir_ino, name, REMOVE_LOWER, 0), name, err);
}

int tree_hide_all(struct tree *t, struct err *err)
{
    int fd = openat(t->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return failed(err, t->dir_path, "open");
    return removed(empty_dir(t, fd, REMOVE_LOWER, 0), t->dir_path, err);
}

int tree_link(struct tree *t, const char *name, const char *target, struct err *err)
{
    char path[PATH_MAX];
    if (stream_path(target, path, sizeof(path)) < 0 || path[0] == '\0')
        return bad(err, target, "leads out of the image");
    char *slash = strrchr(path, '/');
    const char *last = slash ? slash + 1 : path;
    if (slash)
        *slash = '\0';
    _cleanup_fd_ int dir = tree_open_dir(t, slash ? path : "", O_PATH);
    uint64_t ino = 0;
    if (dir < 0 || inode_of(dir, &ino) < 0)
        return bad(err, target, "is linked to and is not there");
    if (ino == t->dir_ino && strcmp(last, name) == 0)
        return 0;
    struct stat st;
    if (fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(st.st_mode))
        return bad(err, target, "is linked to and is not there");
    int r = tree_claim(t, name, false, err);
    if (r < 0)
        return r;
    return linkat(dir, last, t->dir, name, 0) < 0 ? failed(err, name, "link") : 0;
}
